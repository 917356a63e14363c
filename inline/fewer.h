/* Fewer checks in a module that clang -fsanitize=thread has made, which find the same races: what plugin/ does for gcc. */
#ifndef RF_INLINE_FEWER_H
#define RF_INLINE_FEWER_H

#include <llvm-c/Types.h>

#ifdef __cplusplus
extern "C"
#endif
    void
    rf_fewer_checks(LLVMModuleRef module);

#endif
