/* SPDX-License-Identifier: BSD-3-Clause */
/* Scopes: each thread's stack of scopes, and the handles in each. Called by the makers of handles (array,
 * transform).
 *
 * A thread opens and closes only its own scopes, so their lists need no lock. All stacks are also in one list,
 * for oly_scope_close_all; it begins a new generation, by which threads see that their stacks are gone. */
#include "core/scope.h"
#include "core/error.h"
#include <pthread.h>
#include <stdatomic.h>

struct oly_scope {
    struct oly_scope *outer; /* NULL at the bottom */
    oly_owned *newest;
};

struct stack {
    struct oly_scope bottom; /* opened when the thread first needs it, closed at finalize */
    struct oly_scope *innermost;
    int not_opened; /* scopes that could not be allocated: closing them does nothing */
    struct stack *next;
};

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* of `stacks` */
static struct stack *stacks;
static atomic_uint generation = 1;

static _Thread_local struct stack *own;
static _Thread_local unsigned own_generation;

/* The stack of this thread, or NULL if it has none yet. */
static struct stack *find_stack(void)
{
    return own_generation == atomic_load_explicit(&generation, memory_order_relaxed) ? own : NULL;
}

static struct stack *need_stack(void)
{
    struct stack *stack = find_stack();
    if (stack)
        return stack;
    stack = oly_calloc(1, sizeof *stack);
    if (!stack)
        return NULL;
    stack->innermost = &stack->bottom;
    pthread_mutex_lock(&lock);
    stack->next = stacks;
    stacks = stack;
    own = stack;
    own_generation = atomic_load(&generation);
    pthread_mutex_unlock(&lock);
    return stack;
}

/* -- objects in a scope ------------------------------------------------------------------------ */

static void hang(oly_owned *object, struct oly_scope *scope)
{
    object->scope = scope;
    object->previous = NULL;
    object->next = scope ? scope->newest : NULL;
    if (object->next)
        object->next->previous = object;
    if (scope)
        scope->newest = object;
}

static void unhang(oly_owned *object)
{
    if (!object->scope)
        return;
    if (object->next)
        object->next->previous = object->previous;
    if (object->previous)
        object->previous->next = object->next;
    else
        object->scope->newest = object->next;
    object->next = object->previous = NULL;
    object->scope = NULL;
}

oly_status oly_scope_adopt(oly_owned *object, void (*destroy)(oly_owned *object))
{
    struct stack *stack = need_stack();
    if (!stack)
        return oly_out_of_memory(sizeof *stack, "a scope");
    object->destroy = destroy;
    hang(object, stack->innermost);
    return OLY_OK;
}

void oly_scope_move(oly_owned *object, struct oly_scope *to)
{
    unhang(object);
    hang(object, to);
}

void oly_scope_drop(oly_owned *object)
{
    unhang(object);
    object->destroy(object);
}

/* Newest first: an object may use older ones while it is destroyed. */
static void empty(struct oly_scope *scope)
{
    while (scope->newest)
        oly_scope_drop(scope->newest);
}

/* -- scopes ------------------------------------------------------------------------------------ */

struct oly_scope *oly_scope_innermost(void)
{
    struct stack *stack = find_stack();
    return stack ? stack->innermost : NULL;
}

struct oly_scope *oly_scope_outer(struct oly_scope *scope)
{
    return scope->outer ? scope->outer : scope;
}

oly_status oly_scope_begin(void)
{
    struct stack *stack = need_stack();
    struct oly_scope *scope = stack ? oly_malloc(sizeof *scope) : NULL;
    if (!scope)
        return oly_out_of_memory(sizeof *scope, "a scope");
    *scope = (struct oly_scope){.outer = stack->innermost};
    stack->innermost = scope;
    return OLY_OK;
}

void oly_scope_open(void)
{
    OLY_ENTER();
    oly_status status = oly_scope_begin();
    struct stack *stack = find_stack();
    if (status != OLY_OK && stack)
        stack->not_opened++;
    oly_raise(status);
}

static void close_innermost(struct stack *stack)
{
    struct oly_scope *scope = stack->innermost;
    stack->innermost = scope->outer; /* objects made while destroying belong to the outer scope */
    empty(scope);
    oly_release(scope);
}

void oly_scope_close(void)
{
    OLY_ENTER();
    struct stack *stack = find_stack();
    if (stack && stack->not_opened > 0) {
        stack->not_opened--;
        return;
    }
    if (!stack || stack->innermost == &stack->bottom) {
        oly_raise(oly_fail(OLY_STATE, "no scope is open on this thread; each oly_scope_close needs an oly_scope_open"));
        return;
    }
    close_innermost(stack);
}

void oly_scope_close_all(void)
{
    pthread_mutex_lock(&lock);
    struct stack *stack = stacks;
    stacks = NULL;
    pthread_mutex_unlock(&lock);
    struct stack *gone = NULL;
    while (stack) {
        while (stack->innermost != &stack->bottom)
            close_innermost(stack);
        empty(&stack->bottom);
        struct stack *next = stack->next;
        stack->next = gone;
        gone = stack;
        stack = next;
    }
    atomic_fetch_add(&generation, 1);
    while (gone) {
        struct stack *next = gone->next;
        oly_release(gone);
        gone = next;
    }
}
