import {
  checkPermit2,
  checksumAddress,
  type Expected,
  eip2612GasSponsoring,
  expectedPermit2Of,
  type Network,
  type Permit2Payment,
  type Permit2Scheme,
  parsePaymentRequirementsV2,
  parsePermit2Payment,
  permit2DomainSeparator,
} from '@purser/protocol'
import { unixSeconds } from '../../../../platform/clock.ts'
import { settlementOf } from '../../../relayer/index.ts'
import { refused } from '../../credential.ts'
import { refuseUnserved } from '../../facilitator/networks.ts'
import { extensionsOf, objectOf } from '../../facilitator/paid-resource.ts'
import type { FacilitatorBody } from '../../facilitator/schema.ts'
import { expiryOf } from '../../new-payment.ts'
import { fingerprintOf } from '../../payment-identifier.ts'
import type { Ctx } from '../../ports.ts'
import type { Claim, Judged, Reading, Scheme, Step } from '../method.ts'
import { chargeUpto } from './charge.ts'
import { refusePermit2ByChain } from './on-chain.ts'
import { storedPermit2 } from './settlement.ts'
import { permit2Kinds } from './supported.ts'

/** Schemes `exact` with asset transfer method permit2, and `upto`; only version 2 has them. */
export const permit2: Scheme = { accepts, read, kinds: permit2Kinds }

/** Selects by the server's requirements for `upto`, and by what was signed for `exact`, as the reference implementation does. */
function accepts({ paymentPayload, paymentRequirements }: FacilitatorBody): boolean {
  if (paymentRequirements.scheme === 'upto') return true
  return paymentPayload.x402Version === 2 && 'permit2Authorization' in objectOf(paymentPayload.payload)
}

interface Request {
  readonly payment: Permit2Payment
  readonly scheme: Permit2Scheme
  /** Contains what the payer permitted: at settle an `upto` request charges less. */
  readonly expected: Expected
}

function read(ctx: Ctx, body: FacilitatorBody, step: Step): Reading {
  const payment = parsePayment(body)
  const payer = checksumAddress(payment.payload.permit2Authorization.from, ctx.signatures.keccak)
  const { scheme, requested } = readRequirements(body, payer)
  refuseUnserved(ctx, requested.network, payer)
  const permitted = BigInt(payment.payload.permit2Authorization.permitted.amount)
  const isCharge = scheme === 'upto' && step === 'settle'
  if (isCharge && requested.rawAmount > permitted)
    throw refused('invalid_upto_evm_payload_settlement_exceeds_amount', { payer })
  const expected = isCharge ? { ...requested, rawAmount: permitted } : requested
  const claim: Claim = {
    claimKey: permit2ClaimKey(requested.network, payment),
    x402Version: 2,
    payer,
    network: requested.network,
    token: requested.token,
    payTo: requested.payTo,
    fingerprint: fingerprintOf(payment.payload),
    usedReason: 'permit2_invalid_nonce',
    isPaidBy: (rawRecorded) =>
      scheme === 'upto' ? requested.rawAmount <= permitted : rawRecorded === requested.rawAmount,
    ...(isCharge ? { charge: (paymentId) => chargeUpto(ctx, paymentId, requested.rawAmount) } : {}),
  }
  return { claim, judge: () => judge(ctx, { payment, scheme, expected }) }
}

/** Returns the one key for a permit of an owner, whatever the token or the entry point: Permit2's nonces belong to the owner. */
function permit2ClaimKey(network: Network, { payload }: Pick<Permit2Payment, 'payload'>): string {
  const { from, nonce } = payload.permit2Authorization
  return `permit2:${network.caip2}:${from.toLowerCase()}:${nonce}`
}

/** Parses the payment. Other extensions are parsed elsewhere, leniently: only the one that belongs to Permit2 is kept. */
function parsePayment(body: FacilitatorBody): Permit2Payment {
  if (body.x402Version !== 2) throw refused('invalid_x402_version')
  const extensions = { [eip2612GasSponsoring]: extensionsOf(body)[eip2612GasSponsoring] }
  const parsed = parsePermit2Payment({ ...body.paymentPayload, extensions })
  if (parsed.ok) return parsed.value
  throw refused(parsed.fault.reason, { message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
}

function readRequirements(body: FacilitatorBody, payer: string): { scheme: Permit2Scheme; requested: Expected } {
  const parsed = parsePaymentRequirementsV2(body.paymentRequirements)
  if (!parsed.ok)
    throw refused(parsed.fault.reason, { payer, message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
  const { scheme } = parsed.value
  if (scheme !== 'exact' && scheme !== 'upto') throw refused('unsupported_scheme', { payer })
  const requested = expectedPermit2Of(parsed.value)
  if (typeof requested === 'string') throw refused(requested, { payer })
  return { scheme, requested }
}

function judge(ctx: Ctx, { payment, scheme, expected }: Request): Judged {
  const { network } = expected
  const verdict = checkPermit2({
    payment,
    scheme,
    expected,
    facilitator: ctx.settlerAddress,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: separatorOf(ctx, network),
  })
  if (!verdict.ok) throw refused(verdict.reason, { payer: verdict.payer })
  const settlement = storedPermit2(verdict)
  return {
    scheme,
    rawAmount: verdict.transfer.permitted,
    settlement,
    validBefore: expiryOf(verdict.transfer.deadline),
    refuseByChain: (payment) =>
      refusePermit2ByChain(ctx, { network, settlement: settlementOf(settlement), isProven: verdict.isProven }, payment),
  }
}

const separators = new Map<number, Uint8Array>()

/** Returns Permit2's domain separator on a network, hashed once per process. */
function separatorOf(ctx: Pick<Ctx, 'signatures'>, { chainId }: Network): Uint8Array {
  const known = separators.get(chainId) ?? permit2DomainSeparator(chainId, ctx.signatures.keccak)
  separators.set(chainId, known)
  return known
}
