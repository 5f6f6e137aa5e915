import {
  checkAuthorization,
  checksumAddress,
  type Expected,
  expectedOf,
  type FacilitatorRequest,
  parseFacilitatorRequest,
} from '@purser/protocol'
import { unixSeconds } from '../../../../platform/clock.ts'
import { refused, separatorOf } from '../../credential.ts'
import { refuseUnserved } from '../../facilitator/networks.ts'
import type { FacilitatorBody } from '../../facilitator/schema.ts'
import { claimKeyOf, expiryOf, storedAuthorization } from '../../new-payment.ts'
import { fingerprintOf } from '../../payment-identifier.ts'
import type { Ctx } from '../../ports.ts'
import type { Judged, Reading, Scheme } from '../method.ts'
import { refuseByChain, resolveDeployment } from './on-chain.ts'
import { refuseDomainMismatch } from './token-domain.ts'

/**
 * Scheme `exact` with a signed EIP-3009 authorization, versions 1 and 2: the checks and reasons of `payments.verify`.
 * It is the last scheme and accepts every body, so that it also reports the fault of a body that belongs to no scheme.
 */
export const exactEip3009: Scheme = { accepts: () => true, read }

function read(ctx: Ctx, body: FacilitatorBody): Reading {
  const request = parse(body)
  const { payload } = request.paymentPayload
  const payer = checksumAddress(payload.authorization.from, ctx.signatures.keccak)
  const expected = expectedOf(request.paymentRequirements)
  if (typeof expected === 'string') throw refused(expected, { payer })
  const { network, token, payTo, rawAmount } = expected
  refuseUnserved(ctx, network, payer)
  const claim = {
    claimKey: claimKeyOf(network, token, { payer, authorization: payload.authorization }),
    x402Version: request.x402Version,
    payer,
    network,
    token,
    payTo,
    fingerprint: fingerprintOf(payload),
    isPaidBy: (raw: bigint) => raw === rawAmount,
  }
  return { claim, judge: () => judge(ctx, request, expected) }
}

/** Extensions and output schemas are parsed elsewhere, leniently: an invalid one does not invalidate the payment. */
function parse(body: FacilitatorBody): FacilitatorRequest {
  const parsed = parseFacilitatorRequest({
    x402Version: body.x402Version,
    paymentPayload: { ...body.paymentPayload, extensions: undefined },
    paymentRequirements: { ...body.paymentRequirements, outputSchema: undefined },
  })
  if (parsed.ok) return parsed.value
  throw refused(parsed.fault.reason, { message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
}

function judge(ctx: Ctx, { paymentPayload: payload }: FacilitatorRequest, expected: Expected): Judged {
  const { network, token } = expected
  const verdict = checkAuthorization({
    payload,
    expected,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: separatorOf(ctx, network, token),
  })
  if (!verdict.ok) throw refused(verdict.reason, { payer: verdict.payer })
  return {
    scheme: 'exact',
    rawAmount: verdict.authorization.value,
    settlement: storedAuthorization(verdict),
    validBefore: expiryOf(verdict.authorization.validBefore),
    async refuseByChain(payment) {
      await refuseDomainMismatch(ctx, network, token)
      const judged = { payload, token, verdict: await resolveDeployment(ctx, network, verdict) }
      return refuseByChain(ctx, network, judged, payment)
    },
  }
}
