import {
  checkPermit2,
  checksumAddress,
  type Expected,
  eip2612GasSponsoring,
  expectedPermit2Of,
  type Network,
  type Permit2Payment,
  type Permit2Scheme,
  type Permit2Verdict,
  parsePaymentRequirementsV2,
  parsePermit2Payment,
  permit2Proxies,
  type SupportedKind,
} from '@purser/protocol'
import { unixSeconds } from '../../../../platform/clock.ts'
import { isProblem } from '../../../../platform/errors.ts'
import type { PaymentId } from '../../../../platform/ids.ts'
import { gasOfPermit2, gasOfUpto, relays, settlementOf, whyNotPermit2 } from '../../../relayer/index.ts'
import { gasPaidBy, leastChargeOf, paysForLessGas, refused } from '../../credential.ts'
import { fail } from '../../errors.ts'
import { refuseUnserved } from '../../facilitator/networks.ts'
import { extensionsOf, objectOf } from '../../facilitator/paid-resource.ts'
import type { FacilitatorBody } from '../../facilitator/schema.ts'
import { expiryOf, fingerprintOf } from '../../new-payment.ts'
import type { Ctx, Funds } from '../../ports.ts'
import { requestSettlement } from '../../settle.ts'
import { paymentPurpose, recordSettled } from '../../settlement-outcome.ts'
import { markCharged, settling, uptoTermsOf } from '../../settlement-store.ts'
import { listTakenClaims, type StoredPermit2 } from '../../store.ts'
import type { CheckedPayment, KindsCtx, ParsedRequest, ReadCredential, Scheme, Step } from '../method.ts'

/**
 * Returns what Permit2 adds to `/supported`: scheme `upto` wherever its proxy has code, with the account that a payer must name.
 * Scheme `exact` by Permit2 needs no kind of its own. A network whose node fails is left out this time; a proxy that was found is
 * not queried again.
 */
async function permit2Kinds(ctx: KindsCtx, networks: readonly Network[]): Promise<readonly SupportedKind[]> {
  const offered = await Promise.all(networks.map((network) => hasUptoProxy(ctx, network)))
  return networks
    .filter((_, index) => offered[index])
    .map(({ caip2 }) => ({
      x402Version: 2,
      scheme: 'upto',
      network: caip2,
      extra: { facilitatorAddress: ctx.settlerAddress },
    }))
}

async function hasUptoProxy(ctx: Pick<Ctx, 'chainMemory' | 'chains'>, network: Network): Promise<boolean> {
  const known = ctx.chainMemory.uptoNetworks
  if (known.has(network.name)) return true
  try {
    if ((await ctx.chains.on(network).code(permit2Proxies.upto)) === '0x') return false
  } catch (error) {
    if (isProblem(error, 'chain-unavailable')) return false
    throw error
  }
  known.add(network.name)
  return true
}

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

function read(ctx: Ctx, body: FacilitatorBody, step: Step): ParsedRequest {
  const payment = parsePayment(body)
  const payer = checksumAddress(payment.payload.permit2Authorization.from, ctx.signatures.keccak)
  const { scheme, requested } = readRequirements(body, payer)
  refuseUnserved(ctx, requested.network, payer)
  const permitted = BigInt(payment.payload.permit2Authorization.permitted.amount)
  const isCharge = scheme === 'upto' && step === 'settle'
  if (isCharge && requested.rawAmount > permitted)
    throw refused('invalid_upto_evm_payload_settlement_exceeds_amount', { payer })
  const expected = isCharge ? { ...requested, rawAmount: permitted } : requested
  const claim: ReadCredential = {
    claimKey: permit2ClaimKey(requested.network, payment),
    x402Version: 2,
    scheme,
    payer,
    network: requested.network,
    token: requested.token,
    payTo: requested.payTo,
    fingerprint: fingerprintOf(payment.payload),
    usedReason: 'permit2_invalid_nonce',
    isPaidBy: (rawRecorded) =>
      scheme === 'upto' ? requested.rawAmount <= permitted : rawRecorded === requested.rawAmount,
    ...(isCharge ? { charge: (paymentId) => chargeUpto(ctx, requested, paymentId, payer) } : {}),
  }
  return { claim, check: () => check(ctx, { payment, scheme, expected }) }
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

function check(ctx: Ctx, { payment, scheme, expected }: Request): CheckedPayment {
  const { network } = expected
  const verdict = checkPermit2({
    payment,
    scheme,
    expected,
    facilitator: ctx.settlerAddress,
    nowSeconds: unixSeconds(ctx.clock.now()),
    recover: ctx.signatures.recover,
    keccak: ctx.signatures.keccak,
    domainSeparator: ctx.signatures.domainSeparators.ofPermit2(network),
  })
  if (!verdict.ok) throw refused(verdict.reason, { payer: verdict.payer })
  const settlement = { ...storedPermit2(verdict), ...grantOf(ctx, expected, verdict) }
  return {
    scheme,
    rawAmount: verdict.transfer.permitted,
    validBefore: expiryOf(verdict.transfer.deadline),
    async refuseByChain(claimKey) {
      const question = { network, settlement, isProven: verdict.isProven }
      return { settlement, funds: await refusePermit2ByChain(ctx, question, claimKey) }
    },
  }
}

/**
 * Returns the grant of gas that the settlement keeps. An `upto` permit gets what its smallest charge pays for, since the charge is known only after the resource
 * was served; one that permits less than this charge is refused. An `exact` permit gets what its amount pays for, if that is less than the usual grant.
 */
function grantOf(
  ctx: Pick<Ctx, 'gasPrices' | 'settleMicroUsdMin'>,
  { network, token }: Expected,
  { transfer: { scheme, owner, permitted: raw }, permit2612 }: GoodVerdict,
): Pick<StoredPermit2, 'gas' | 'least'> {
  if (scheme === 'exact') {
    const gas = gasPaidBy(ctx, { network, token, raw }, gasOfPermit2)
    return gas === undefined ? {} : { gas }
  }
  const gas = permit2612 === undefined ? gasOfUpto.ordinary : gasOfUpto.withApproval
  const least = leastChargeOf(ctx, network, token, gas)
  if (raw < least)
    throw refused('invalid_payment_requirements', {
      payer: owner,
      message: 'the permitted amount is below the smallest charge that is settled on chain',
    })
  return { gas: gas.toString(), least: least.toString() }
}

/**
 * Requests settlement of an `upto` payment with the amount owed, in the token's smallest unit; at most what was permitted. Only
 * the first charge counts: a later one, whatever its amount, joins the settlement in progress. If nothing is owed it is settled
 * at once, without a transaction. An amount below the smallest charge, that of verify or that of now, is refused, and nothing is
 * stored: the server may settle for more, or for nothing.
 */
async function chargeUpto(ctx: Ctx, requested: Expected, paymentId: PaymentId, payer: string): Promise<void> {
  const { rawAmount: amount } = requested
  if (amount !== 0n && (await isBelowLeast(ctx, requested, paymentId)))
    throw refused('invalid_payment_requirements', {
      payer,
      message: 'the amount is below the smallest charge that is settled on chain; settle for nothing or for more',
    })
  await ctx.db.tx(async (tx) => {
    const payment = await markCharged(tx, paymentId, amount, ctx.clock.now())
    if (payment === undefined) return
    if (amount === 0n) return recordSettled(ctx, tx, [{ id: paymentId, txHash: null, gasNanoUsd: 0n }])
    await relays.enqueue(tx, paymentPurpose, settling(paymentId))
  })
  await requestSettlement(ctx, paymentId)
}

/** Whether a charge is below the smallest one, both at verify and now. A payment that is no longer verified is not charged again. */
async function isBelowLeast(
  ctx: Pick<Ctx, 'db' | 'gasPrices' | 'settleMicroUsdMin'>,
  { network, token, rawAmount }: Expected,
  paymentId: PaymentId,
): Promise<boolean> {
  const terms = await uptoTermsOf(ctx.db, paymentId)
  if (terms === undefined || (terms.least !== null && rawAmount >= terms.least)) return false
  return rawAmount < leastChargeOf(ctx, network, token, terms.gas ?? gasOfUpto.ordinary)
}

interface Permit2Question {
  readonly network: Network
  readonly settlement: StoredPermit2
  /** Whether the payer's key is known to have signed; false if only a contract could have. */
  readonly isProven: boolean
}

/**
 * Refuses a payment that the chain would not settle. A permit that is already recorded is a duplicate, even if it has
 * other faults now.
 */
async function refusePermit2ByChain(
  ctx: Pick<Ctx, 'chains' | 'db' | 'settlerAddress'>,
  { network, settlement: stored, isProven }: Permit2Question,
  claimKey: string,
): Promise<Funds> {
  const settlement = settlementOf(stored)
  const inspect = (gas: string | undefined) =>
    ctx.chains.on(network).inspectPermit2({
      settlement,
      settler: ctx.settlerAddress,
      gas: gas === undefined ? undefined : BigInt(gas),
    })
  const facts = await inspect(stored.gas)
  const reason = whyNotPermit2(facts, settlement, { isProven })
  if (reason === undefined) return { rawBalance: facts.balance, spentIds: [] }
  if ((await listTakenClaims(ctx.db, [claimKey])).size > 0) throw fail('duplicate-payment')
  const isGas =
    stored.gas !== undefined && whyNotPermit2(await inspect(undefined), settlement, { isProven }) === undefined
  const message = stored.scheme === 'upto' ? needsMoreGas : paysForLessGas
  throw refused(reason, { payer: settlement.transfer.owner, ...(isGas && { message }) })
}

/** Message added to the refusal of an `upto` permit that would be accepted with the usual gas grant. */
const needsMoreGas = 'The chain refuses the payment with the gas that the smallest charge pays for.'

type GoodVerdict = Extract<Permit2Verdict, { ok: true }>

/**
 * Returns the row's settlement of a verified payment. Until settlement is requested, the whole permitted amount counts as
 * charged.
 */
function storedPermit2({ transfer, signature, permit2612 }: GoodVerdict): StoredPermit2 {
  const { scheme, spender, owner, token, witness } = transfer
  const permitted = transfer.permitted.toString()
  return {
    kind: 'permit2',
    scheme,
    spender,
    owner,
    token,
    permitted,
    charged: permitted,
    nonce: transfer.nonce.toString(),
    deadline: transfer.deadline.toString(),
    witness: {
      to: witness.to,
      validAfter: witness.validAfter.toString(),
      facilitator: witness.facilitator ?? null,
    },
    signature,
    permit2612:
      permit2612 === undefined
        ? null
        : { ...permit2612, value: permit2612.value.toString(), deadline: permit2612.deadline.toString() },
  }
}
