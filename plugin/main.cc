/* A plugin of gcc, which `redflag cc` gives it: behind gcc's own pass that puts in the checks of -fsanitize=thread, one that puts in those that it has
 * forgotten, and others that find the same races with fewer of them. Each of its files is one. By its other name it leaves no check out.
 */
#include "plugin/check.h"

int plugin_is_GPL_compatible; /* gcc asks. The Apache License 2.0 is, with version 3 */

static const pass_data about = {
    GIMPLE_PASS, "redflag", OPTGROUP_NONE, TV_NONE, PROP_ssa | PROP_cfg, 0, 0, 0, TODO_update_ssa_only_virtuals
};

class checks : public gimple_opt_pass
{
  public:
    checks(gcc::context *context, bool optimised, bool fewer) : gimple_opt_pass(about, context), optimised(optimised), fewer(fewer)
    {
    }
    bool gate(function *) final override
    {
        return (flag_sanitize & SANITIZE_THREAD) && optimised == !!optimize;
    }
    unsigned execute(function *function) final override
    {
        rf_check_copies(function);
        if (!fewer || flag_non_call_exceptions || function->calls_setjmp)
            return 0;
        rf_join_neighbours(function);
        bool ends = rf_leave_loops(), is_quiet = rf_remove_repeated(function);
        if (ends && is_quiet)
            rf_function_is_quiet(function->decl);
        rf_prefetch_histories(function);
        return 0;
    }

  private:
    bool optimised; /* gcc has a pass of its own for what is not */
    bool fewer;
};

int plugin_init(plugin_name_args *plugin, plugin_gcc_version *version)
{
    if (!plugin_default_version_check(version, &gcc_version))
        return 0; /* another gcc than it was made for: all checks stay */
    bool fewer = !strstr(plugin->base_name, "copies");
    register_pass_info place = { new checks(g, true, fewer), "tsan", 1, PASS_POS_INSERT_AFTER };
    register_callback(plugin->base_name, PLUGIN_PASS_MANAGER_SETUP, NULL, &place);
    register_pass_info unoptimised = { new checks(g, false, false), "tsan0", 1, PASS_POS_INSERT_AFTER };
    register_callback(plugin->base_name, PLUGIN_PASS_MANAGER_SETUP, NULL, &unoptimised);
    rf_check_roots(plugin->base_name);
    return 0;
}
