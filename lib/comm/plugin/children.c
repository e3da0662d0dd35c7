/* lib/comm/plugin/children.c - what NCCL reports of a task's children: the network's operations
 * with their steps, and kernels by channel. Each adds what it did to its parent, and its place is
 * free.
 */
#include "comm/plugin/abi.h"
#include "comm/plugin/callbacks.h"
#include "comm/plugin/nodes.h"

static void mark_started(pki_nccl_node *n)
{
    const pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    if (t && n->queued && !n->started)
        pki_comm_begun(t->comm, n->sequence);
    n->started = true;
}

/* A handle of another process, or one that is not a task's, has no node here. */
static pki_nccl_node *parent_of(const pki_nccl_node *n, uint32_t types)
{
    if (n->flags & PKI_NCCL_FOREIGN)
        return NULL;
    /* Perhaps before its own turn: the pool is looked through while it changes. */
    pki_nccl_node *p = pki_nccl_node_make(n->parent);
    return p && (p->type & types) && p->context == n->context ? p : NULL;
}

static void net_ends(pki_nccl_node *n)
{
    pki_nccl_node *step = parent_of(n, PKI_NCCL_PROXY_STEP);
    if (step)
        step->net_events++;
}

static void add_steps(pki_nccl_node *to, const pki_nccl_node *from)
{
    to->steps += from->steps;
    to->bytes += from->bytes;
    to->net_events += from->net_events;
    for (int i = 0; i < PKI_NCCL_WAITS; i++)
        to->waits[i] += from->waits[i];
}

static void step_ends(pki_nccl_node *n)
{
    pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *operation = parent_of(n, PKI_NCCL_PROXY_OP);
    pki_nccl_leave_state(e, n->stop);
    n->steps = 1;
    n->bytes = pki_load(&e->moved);
    for (int i = 0; i < PKI_NCCL_WAITS; i++)
        n->waits[i] = pki_load(&e->waits[i]);
    if (operation)
        add_steps(operation, n);
}

static void proxy_ends(pki_nccl_node *n)
{
    const pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *task = parent_of(n, PKI_NCCL_TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    n->bytes = n->bytes ? n->bytes : pki_load(&e->moved);
    if (t)
        pki_nccl_emit_proxy(t, e, n->bytes);
    if (!task)
        return;
    task->proxies++;
    task->proxy_end = PKI_MAX(task->proxy_end, n->stop);
    add_steps(task, n);
}

static void kernel_ends(pki_nccl_node *n)
{
    const pki_nccl_event *e = pki_nccl_event_of(n->handle);
    pki_nccl_node *task = parent_of(n, PKI_NCCL_TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    uint64_t first = e->timer, last = pki_load(&e->stop_timer);
    if (t)
        pki_nccl_emit_kernel(t, e);
    if (!task)
        return;
    task->kernel_start = task->kernels ? PKI_MIN(task->kernel_start, n->start) : n->start;
    task->kernel_end = PKI_MAX(task->kernel_end, n->stop);
    task->kernels++;
    if (!first || last < first)
        return;
    task->gpu_first = task->gpu_first ? PKI_MIN(task->gpu_first, first) : first;
    task->gpu_last = PKI_MAX(task->gpu_last, last);
}

void pki_nccl_child_seen(pki_nccl_node *n, bool open)
{
    pki_nccl_node *p = parent_of(n, n->type == PKI_NCCL_NET          ? PKI_NCCL_PROXY_STEP
                                    : n->type == PKI_NCCL_PROXY_STEP ? PKI_NCCL_PROXY_OP
                                                                     : PKI_NCCL_TASKS);
    pki_nccl_communicator *t = pki_nccl_communicator_of(n->context);
    if (t && n->type == PKI_NCCL_PROXY_OP)
        t->proxies = true;
    if (t && n->type == PKI_NCCL_KERNEL_CH)
        t->kernels = true;
    if (!p)
        return;
    p->open += open;
    if (p->type & PKI_NCCL_TASKS)
        mark_started(p);
}

bool pki_nccl_child_ends(pki_nccl_node *n)
{
    switch (n->type) {
    case PKI_NCCL_NET:
        net_ends(n);
        return true;
    case PKI_NCCL_PROXY_STEP:
        step_ends(n);
        return true;
    case PKI_NCCL_PROXY_OP:
        proxy_ends(n);
        return true;
    case PKI_NCCL_KERNEL_CH:
        kernel_ends(n);
        return true;
    default:
        return false;
    }
}
