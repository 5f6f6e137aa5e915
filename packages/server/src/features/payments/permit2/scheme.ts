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
import { unixSeconds } from '../../../platform/clock.ts'
import type { Ctx } from '../../../platform/ctx.ts'
import { settlementOf } from '../../relayer/index.ts'
import { refused } from '../credential.ts'
import { refuseUnserved } from '../facilitator/networks.ts'
import { extensionsOf } from '../facilitator/paid-resource.ts'
import type { FacilitatorBody } from '../facilitator/schema.ts'
import type { Claim, Judged, Reading, Scheme, Step } from '../facilitator/scheme.ts'
import { lapseOf } from '../new-payment.ts'
import { fingerprintOf } from '../payment-identifier.ts'
import { refusePermit2ByChain } from './on-chain.ts'
import { storedPermit2 } from './settlement.ts'

/** Schemes `exact` with asset transfer method permit2, and `upto`; version 2 alone has them. */
export const permit2: Scheme = { read }

interface Request {
  readonly payment: Permit2Payment
  readonly scheme: Permit2Scheme
  /** With what the payer permitted: at settle an `upto` request asks for less. */
  readonly expected: Expected
}

function read(ctx: Ctx, body: FacilitatorBody, step: Step): Reading {
  const payment = parsePayment(body)
  const payer = checksumAddress(payment.payload.permit2Authorization.from, ctx.signatures.keccak)
  const { scheme, asked } = readRequirements(body, payer)
  refuseUnserved(ctx, asked.network, payer)
  const permitted = BigInt(payment.payload.permit2Authorization.permitted.amount)
  const isCharge = scheme === 'upto' && step === 'settle'
  if (isCharge && asked.rawAmount > permitted)
    throw refused('invalid_upto_evm_payload_settlement_exceeds_amount', { payer })
  const expected = isCharge ? { ...asked, rawAmount: permitted } : asked
  const claim: Claim = {
    claimKey: permit2ClaimKey(asked.network, payment),
    x402Version: 2,
    payer,
    network: asked.network,
    token: asked.token,
    payTo: asked.payTo,
    fingerprint: fingerprintOf(payment.payload),
    usedReason: 'permit2_invalid_nonce',
    isPaidBy: (rawRecorded) => (scheme === 'upto' ? asked.rawAmount <= permitted : rawRecorded === asked.rawAmount),
    ...(isCharge ? { charge: asked.rawAmount } : {}),
  }
  return { claim, judge: () => judge(ctx, { payment, scheme, expected }) }
}

/** One key for every permit of an owner, whatever the token or the door: Permit2's nonces are the owner's. */
export function permit2ClaimKey(network: Network, { payload }: Pick<Permit2Payment, 'payload'>): string {
  const { from, nonce } = payload.permit2Authorization
  return `permit2:${network.caip2}:${from.toLowerCase()}:${nonce}`
}

/** Extensions of other makes are read elsewhere, and leniently: only the one that belongs to Permit2 is kept. */
function parsePayment(body: FacilitatorBody): Permit2Payment {
  if (body.x402Version !== 2) throw refused('invalid_x402_version')
  const extensions = { [eip2612GasSponsoring]: extensionsOf(body)[eip2612GasSponsoring] }
  const parsed = parsePermit2Payment({ ...body.paymentPayload, extensions })
  if (parsed.ok) return parsed.value
  throw refused(parsed.fault.reason, { message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
}

function readRequirements(body: FacilitatorBody, payer: string): { scheme: Permit2Scheme; asked: Expected } {
  const parsed = parsePaymentRequirementsV2(body.paymentRequirements)
  if (!parsed.ok)
    throw refused(parsed.fault.reason, { payer, message: `${parsed.fault.path} ${parsed.fault.message}`.trim() })
  const { scheme } = parsed.value
  if (scheme !== 'exact' && scheme !== 'upto') throw refused('unsupported_scheme', { payer })
  const asked = expectedPermit2Of(parsed.value)
  if (typeof asked === 'string') throw refused(asked, { payer })
  return { scheme, asked }
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
    validBefore: lapseOf(verdict.transfer.deadline),
    refuseByChain: (payment) =>
      refusePermit2ByChain(ctx, { network, settlement: settlementOf(settlement), isProven: verdict.isProven }, payment),
  }
}

const separators = new Map<number, Uint8Array>()

/** Permit2's domain separator on a network, hashed once per process. */
function separatorOf(ctx: Pick<Ctx, 'signatures'>, { chainId }: Network): Uint8Array {
  const known = separators.get(chainId) ?? permit2DomainSeparator(chainId, ctx.signatures.keccak)
  separators.set(chainId, known)
  return known
}
