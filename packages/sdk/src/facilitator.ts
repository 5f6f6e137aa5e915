import { call } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Answer, Body, Query } from './operations.ts'
import type { CallOptions, Send } from './transport.ts'

export type FacilitatorRequest = Body<operations['facilitator.verify']>
export type FacilitatorVerification = Answer<operations['facilitator.verify']>
export type FacilitatorSettlement = Answer<operations['facilitator.settle']>
export type FacilitatorSupport = Answer<operations['facilitator.supported']>
export type DiscoveredResources = Answer<operations['facilitator.resources']>

/**
 * The facilitator that any x402 server can use (x402, "Facilitator interface"). A server made with an official package is
 * given the address and the key instead; these are for code of one's own. A refusal is an answer here, not an error.
 */
export function facilitatorOf(send: Send) {
  return {
    verify: (body: FacilitatorRequest, options?: CallOptions): Promise<FacilitatorVerification> =>
      call(send, 'POST', '/facilitator/verify', { ...options, body }),
    settle: (body: FacilitatorRequest, options?: CallOptions): Promise<FacilitatorSettlement> =>
      call(send, 'POST', '/facilitator/settle', { ...options, body }),
    supported: (options?: CallOptions): Promise<FacilitatorSupport> =>
      call(send, 'GET', '/facilitator/supported', { ...options }),
    resources: (
      query?: Query<operations['facilitator.resources']>,
      options?: CallOptions,
    ): Promise<DiscoveredResources> => call(send, 'GET', '/facilitator/discovery/resources', { ...options, query }),
  }
}
