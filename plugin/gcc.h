/* gcc's own headers, in the order that they need. */
#ifndef RF_PLUGIN_GCC_H
#define RF_PLUGIN_GCC_H

#include <gcc-plugin.h>
/* first */
#include <tree.h>
/* second */
#include <gimple.h>
/* then those that need the two */
#include <builtins.h>
#include <calls.h>
#include <cfganal.h>
#include <cfgloop.h>
#include <context.h>
#include <fold-const.h>
#include <gimple-iterator.h>
#include <gimple-ssa.h>
#include <gimplify-me.h>
#include <gimplify.h>
#include <plugin-version.h>
#include <sbitmap.h>
#include <ssa.h>
#include <stringpool.h>
#include <tree-cfg.h>
#include <tree-dfa.h>
#include <tree-pass.h>
#include <tree-scalar-evolution.h>
#include <tree-ssa-loop-ivopts.h>
#include <tree-ssa-loop-niter.h>
#include <tree-ssa-alias.h>
#include <tree-ssa-loop.h>
#include <varasm.h>
/* and those that need several of these */
#include <attribs.h>
/* last */
#include <asan.h>

#endif
