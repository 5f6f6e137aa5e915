import { call, list } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Query, ResponseBody } from './operations.ts'
import type { Listing } from './paging.ts'
import type { CallOptions, Send } from './transport.ts'

/** A movement of money for which a spend policy requires the approval of a person. */
export type Approval = ResponseBody<operations['approvals.get']>
/** Filters of the list of approvals. */
export type ApprovalQuery = Query<operations['approvals.list']>
/** The reason why a person refuses a movement. */
export type ApprovalRefusal = Body<operations['approvals.refuse']>

/** The operations on approvals. Only a person who is signed in approves or refuses; the requester cancels. */
export function approvalsOf(send: Send) {
  const at = (id: string, options?: CallOptions) => ({ ...options, params: { id } })
  return {
    /** Approvals that spend policies required, newest first. */
    list: (query?: ApprovalQuery, options?: CallOptions): Listing<Approval> =>
      list(send, '/approvals', { ...options, query }),
    /** Returns an approval. Throws `NotFoundError` for an unknown id. */
    get: (id: string, options?: CallOptions): Promise<Approval> =>
      call(send, 'GET', '/approvals/{id}', at(id, options)),
    /** Approves a waiting movement, which then starts. Requires a signed-in owner or admin. */
    approve: (id: string, options?: CallOptions): Promise<Approval> =>
      call(send, 'POST', '/approvals/{id}/approve', at(id, options)),
    /**
     * Refuses a waiting movement: it fails, and its reserved funds are available again. Requires a signed-in owner or
     * admin.
     */
    refuse: (id: string, body: ApprovalRefusal = {}, options?: CallOptions): Promise<Approval> =>
      call(send, 'POST', '/approvals/{id}/refuse', { ...at(id, options), body }),
    /** Cancels the caller's own waiting request. */
    cancel: (id: string, options?: CallOptions): Promise<Approval> =>
      call(send, 'POST', '/approvals/{id}/cancel', at(id, options)),
  }
}
