/* SPDX-License-Identifier: BSD-3-Clause */
/* One pointer for equal texts, so that they can be part of objects that are hashed and compared as memory. Callable from every
 * layer. */
#ifndef OLY_CORE_INTERN_TEXT_H
#define OLY_CORE_INTERN_TEXT_H

/* Kept until the program ends. NULL: out of memory, message pending. */
const char *oly_intern_text(const char *text);
#endif
