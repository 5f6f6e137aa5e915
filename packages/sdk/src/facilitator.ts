import { call } from './call.ts'
import type { operations } from './generated/openapi.ts'
import type { Body, Query, ResponseBody } from './operations.ts'
import type { CallOptions, Send } from './transport.ts'

export type FacilitatorRequest = Body<operations['facilitator.verify']>
export type FacilitatorVerification = ResponseBody<operations['facilitator.verify']>
export type FacilitatorSettlement = ResponseBody<operations['facilitator.settle']>
export type FacilitatorSupport = ResponseBody<operations['facilitator.supported']>
export type DiscoveredResources = ResponseBody<operations['facilitator.resources']>

/**
 * The facilitator operations (x402, "Facilitator interface"). A server built with an official package takes the
 * address and the key instead; use these in your own code. A refusal is a response here, not an error.
 */
export function facilitatorOf(send: Send) {
  return {
    /** Verifies an x402 payment and records it once. A refusal is a result, not an error. */
    verify: (body: FacilitatorRequest, options?: CallOptions): Promise<FacilitatorVerification> =>
      call(send, 'POST', '/facilitator/verify', { ...options, body }),
    /**
     * Settles an x402 payment and waits for the outcome. A refusal is a result, not an error. A result with the reason
     * `settlement_pending` means that the outcome is not known yet: repeat the call.
     */
    settle: (body: FacilitatorRequest, options?: CallOptions): Promise<FacilitatorSettlement> =>
      call(send, 'POST', '/facilitator/settle', { ...options, body }),
    /** The schemes and networks that the facilitator supports in the environment of the key. */
    supported: (options?: CallOptions): Promise<FacilitatorSupport> =>
      call(send, 'GET', '/facilitator/supported', { ...options }),
    resources: (
      query?: Query<operations['facilitator.resources']>,
      options?: CallOptions,
    ): Promise<DiscoveredResources> => call(send, 'GET', '/facilitator/discovery/resources', { ...options, query }),
  }
}
