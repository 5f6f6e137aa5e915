import { hash } from 'node:crypto'
import { type AuthorizationOffer, bytesToHex, formatAmount, hexToBytes, sameAddress } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import { actorId } from '../../../platform/ctx.ts'
import type { Tx } from '../../../platform/db/db.ts'
import { Problem } from '../../../platform/errors.ts'
import { parseUrl } from '../../../platform/parse-url.ts'
import { systemCtx } from '../../../platform/work/runner.ts'
import { refuseEndedCaller } from '../../callers/index.ts'
import {
  areCovered,
  authorizeReservation,
  contendedBy,
  exceededByOpen,
  lockOwners,
  retryOnContention,
} from '../../funds/index.ts'
import { sharersOf } from '../../plans/index.ts'
import type { RelayPurpose } from '../../relayer/index.ts'
import {
  policyWouldDeny,
  replaceAmount,
  reservePolicyAgain,
  type SourceWallet,
  underPolicy,
} from '../../wallets/index.ts'
import { endAll } from '../ending.ts'
import { fail } from '../errors.ts'
import { reasonOf, settleRelays, transferIdOf, transferOf } from '../gasless/relay.ts'
import { claimOf } from '../plan.ts'
import type { Ctx, Deps, TransferPlan } from '../ports.ts'
import { outgoing } from '../record.ts'
import type { NewTransfer } from '../schema.ts'
import { findOwnTransfer, lockTransfer, lockTransfers, setAmount, type TransferId, type TransferRow } from '../store.ts'
import { storeOne } from '../transfer.ts'
import { openIfGranted } from './approved.ts'
import { failPaying, noPayableOffer } from './errors.ts'
import { type AllowedOffer, type OfferRefusal, offersWithin, planSignature } from './offers.ts'
import type { ChallengePayment } from './schema.ts'
import {
  findPayment,
  findPaymentOf,
  insertPayment,
  isChallengeTaken,
  lockPayment,
  paymentPurpose,
  type StoredMessage,
  setMessage,
  type WalletPaymentRow,
  watchPayment,
} from './store.ts'

const nonceBytes = 32
/** Most signatures that may still be used: of a wallet address, and on a network of a caller and of all wallets of a share owner. */
const openMax = { address: 1_000, caller: 2_500, organisation: 5_000 }
/** Seconds after which to retry a payment that still waits for its approval. */
const approvalSeconds = 5
/** Seconds after which to fetch a URL again whose 402 was paid before. */
const freshChallengeSeconds = 1
const plainKey = /^[\x20-\x7e]{1,512}$/
/** Milliseconds for which a payment of a URL may wait for custody and for the seller. */
const fetchMs = 45_000

/** An offer that the wallet can pay, with its message. */
interface Planned {
  readonly offer: AuthorizationOffer
  readonly plan: TransferPlan
  readonly message: StoredMessage
}

/**
 * Stores the payment of a 402, once: the message to sign, its reserved funds, its use of the policy and the Idempotency-Key commit together
 * before anything is signed. Returns its transfer.
 */
export function storePayment(ctx: Ctx, request: ChallengePayment): Promise<TransferId> {
  return retryOnContention(ctx, async () => {
    const source = await usableSource(ctx, request)
    const { approvedPaymentId } = request
    return approvedPaymentId === undefined
      ? storeNew(ctx, request, source)
      : storeApproved(ctx, request, { source, transferId: approvedPaymentId })
  })
}

/** Returns the wallet that a request names. Throws `wallet-not-found` or `wallet-retired`. */
export async function usableSource(
  ctx: Pick<Ctx, 'db' | 'findSource' | 'tenant'>,
  { fromWalletId }: Pick<ChallengePayment, 'fromWalletId'>,
): Promise<SourceWallet> {
  const source = await ctx.findSource(ctx.db, ctx.tenant, fromWalletId)
  if (source === undefined) throw fail('wallet-not-found')
  if (source.retiredAt !== null) throw fail('wallet-retired')
  return source
}

async function storeNew(ctx: Ctx, request: ChallengePayment, source: SourceWallet): Promise<TransferId> {
  const { allowed, refusals } = offersWithin(ctx, request)
  const planned = await planFirst(ctx, request, { source, allowed, refusals })
  const { plan, message } = planned
  return storeUnderPolicy(ctx, planned, async (tx) => {
    const nonce = hexToBytes(message.draft.authorization.nonce)
    const own = newTransferOf(request, planned)
    const kind = { purpose: 'payment', operation: 'pay', reportedState: 'pending' } as const
    const resource = resourceOf(request, planned)
    const transferId = await storeOne(tx, {
      ctx,
      request: own,
      plan,
      nonce,
      signedBy: actorId(ctx.actor),
      resource,
      ...kind,
    })
    const { approvalId } = await lockTransfer(tx, transferId)
    await insertPayment(tx, ctx.tenant, {
      transferId,
      method: methodOf(planned),
      message: approvalId === null ? message : undefined,
    })
    if (approvalId === null) {
      await refuseTooMany(ctx, tx, plan)
      await watch(ctx, tx, transferId, planned)
    }
    await commitKeyAndAudit(ctx, tx, transferId, planned)
    return transferId
  })
}

/**
 * Runs the work under the wallet's policy. A challenge for which a payment exists is refused; if the service fetched it, only for now, because a
 * repeat fetches another one.
 */
async function storeUnderPolicy<T>(
  ctx: Pick<Ctx, 'audit' | 'db' | 'takeRefusalRecord' | 'tenant'>,
  { message }: Planned,
  work: (tx: Tx) => Promise<T>,
): Promise<T> {
  try {
    return await underPolicy(ctx, work)
  } catch (error) {
    if (!isChallengeTaken(error)) throw error
    const { challengeKey, fetchUntil } = message
    const known = challengeKey === undefined ? undefined : await findPaymentOf(ctx.db, ctx.tenant, challengeKey)
    const retryAfterSeconds = fetchUntil === undefined ? undefined : freshChallengeSeconds
    throw failPaying('challenge-already-paid', { paymentId: known ?? null, retryAfterSeconds })
  }
}

interface Candidates {
  readonly source: SourceWallet
  readonly allowed: readonly AllowedOffer[]
  readonly refusals: readonly OfferRefusal[]
  readonly except?: string
}

/**
 * The first offer that the wallet can pay and its policy allows. If the policy allows none, the first that the wallet can pay, which the
 * policy then refuses with its reason. Throws the first refusal if the wallet can pay none.
 */
async function planFirst(ctx: Ctx, request: ChallengePayment, candidates: Candidates): Promise<Planned> {
  const { source, allowed, refusals, except } = candidates
  let failure: Problem | undefined
  let denied: Planned | undefined
  for (const one of allowed) {
    try {
      const planned = await planOne(ctx, one, { source, except, isFetched: request.url !== undefined })
      if (except !== undefined) return planned
      const movement = { ...outgoing(newTransferOf(request, planned), planned.plan), operation: 'pay' } as const
      if ((await policyWouldDeny(ctx, movement)) === null) return planned
      denied ??= planned
    } catch (error) {
      if (!(error instanceof Problem)) throw error
      failure ??= error
    }
  }
  if (denied !== undefined) return denied
  throw failure ?? noPayableOffer(refusals)
}

async function planOne(
  ctx: Ctx,
  { offer, chain: fromChain }: AllowedOffer,
  {
    source,
    except,
    isFetched,
  }: { readonly source: SourceWallet; readonly except: string | undefined; readonly isFetched: boolean },
): Promise<Planned> {
  const { network, token: coin, rawAmount, payTo: to, method } = offer
  const routeReason = `The payee sends an authorization that the wallet signs (${method}), and pays the gas.`
  const plan = await planSignature(ctx, { source, network, fromChain, coin, rawAmount, to, routeReason, except })
  const nonce = bytesToHex(ctx.random.bytes(nonceBytes))
  const { credential: draft } = offer.draft({ from: source.address, nonce, nowMs: ctx.clock.now().getTime() })
  const validBefore = instantOf(Number(draft.authorization.validBefore) * 1_000)
  const fetchUntil = isFetched ? instantOf(ctx.clock.now().getTime() + fetchMs) : undefined
  const challengeKey = offer.challengeKey === undefined ? undefined : storedKeyOf(offer.challengeKey)
  return { offer, plan, message: { challengeKey, draft, validBefore, fetchUntil } }
}

/** A seller chooses the id in a key: one that the database cannot store or index is stored as its digest. */
function storedKeyOf(challengeKey: string): string {
  return plainKey.test(challengeKey) ? challengeKey : `sha256 ${hash('sha256', challengeKey, 'hex')}`
}

function newTransferOf({ fromWalletId, reference, metadata }: ChallengePayment, { offer, plan }: Planned): NewTransfer {
  const { fromChain, coin, rawAmount } = plan
  return {
    fromWalletId,
    fromChain,
    fromToken: coin.symbol,
    toAddress: offer.payTo,
    toChain: fromChain,
    toToken: coin.symbol,
    amount: formatAmount(rawAmount, coin.decimals),
    reference,
    metadata,
  }
}

const resourceLengthMax = 2_048

/** The URL that is paid for, as the caller names it or else the seller; without its query, which may have secrets. */
function resourceOf({ url }: ChallengePayment, { offer: { resource } }: Planned): string | null {
  const parsed = parseUrl(url ?? resource ?? '')
  const named = parsed === undefined || parsed.origin === 'null' ? '' : parsed.origin + parsed.pathname
  return named === '' || named.length > resourceLengthMax ? null : named
}

function methodOf({ offer: { method } }: Planned): WalletPaymentRow['method'] {
  if (method === 'mpp/tempo-charge') throw new Error('a managed wallet pays no Tempo charge')
  return method
}

/** Refuses a signature beyond those that may be unused. The address is locked; parallel payments of other addresses may exceed the other two numbers. */
async function refuseTooMany(
  { actor, tenant }: Pick<Ctx, 'actor' | 'tenant'>,
  tx: Tx,
  { network, source }: TransferPlan,
): Promise<void> {
  const own = { network, owner: source.address, signedBy: actorId(actor), sharers: sharersOf(tenant.organisationId) }
  const exceeded = await exceededByOpen(tx, own, openMax)
  if (exceeded === undefined) return
  throw failPaying('too-many-unused-payments', { limitOf: exceeded, limit: openMax[exceeded], retryAfterSeconds: 60 })
}

function watch(
  ctx: Pick<Ctx, 'clock' | 'tenant'>,
  tx: Tx,
  transferId: TransferId,
  { offer, message }: Planned,
): Promise<void> {
  return watchPayment(tx, ctx.tenant, {
    transferId,
    network: offer.network.name,
    token: offer.token.address,
    authorization: message.draft.authorization,
    validBefore: message.validBefore,
    createdAt: ctx.clock.now(),
  })
}

/** Ties the Idempotency-Key to the payment and records it, last in its transaction, unless the caller lost access meanwhile. */
async function commitKeyAndAudit(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'idempotency' | 'person' | 'tenant'>,
  tx: Tx,
  transferId: TransferId,
  { offer, plan }: Planned,
): Promise<void> {
  await refuseEndedCaller(ctx, tx)
  await ctx.idempotency?.commit(tx, transferId)
  const { source, network, coin, rawAmount } = plan
  const amount = formatAmount(rawAmount, coin.decimals)
  const details = { from: source.id, to: offer.payTo, network: network.name, token: coin.symbol, amount }
  await ctx.audit(tx, { action: 'wallets.pay', target: transferId, details: { ...details, method: offer.method } })
}

/** Gives an approved payment the message of a fresh 402, once, if it stays within what was approved. */
async function storeApproved(
  ctx: Ctx,
  request: ChallengePayment,
  { source, transferId }: { readonly source: SourceWallet; readonly transferId: TransferId },
): Promise<TransferId> {
  const approved = await findOwnTransfer(ctx.db, ctx.tenant, transferId)
  if (approved !== undefined) await openIfGranted(ctx, approved)
  const payment = await findPayment(ctx.db, ctx.tenant, transferId)
  if (approved === undefined || payment === undefined || approved.walletId !== source.id)
    throw fail('transfer-not-found')
  refuseClosed(ctx, approved, payment)
  const { allowed, refusals } = offersWithin(ctx, request)
  const [within, outside] = [
    allowed.filter((one) => isWithin(approved, one)),
    allowed.filter((one) => !isWithin(approved, one)),
  ]
  const others = outside.map(({ offer }) => ({
    offer: `${offer.method} ${offer.network.name}`,
    reason: 'not-as-approved' as const,
  }))
  const candidates = { source, allowed: within, refusals: [...refusals, ...others], except: transferId }
  const planned = await planFirst(ctx, request, candidates)
  await storeUnderPolicy(ctx, planned, (tx) => sign(ctx, tx, transferId, planned))
  return transferId
}

function isWithin(approved: TransferRow, { offer }: AllowedOffer): boolean {
  const isSame = offer.network.name === approved.fromNetwork && offer.token.symbol === approved.fromToken
  return isSame && sameAddress(offer.payTo, approved.toAddress) && offer.rawAmount <= approved.rawAmount
}

function refuseClosed(
  ctx: Pick<Ctx, 'clock'>,
  { status, endedAt }: TransferRow,
  { draft, payUntil }: WalletPaymentRow,
): void {
  const isOpen = endedAt === null && draft === null && payUntil !== null && payUntil > ctx.clock.now()
  if (isOpen) return
  const isWaiting = endedAt === null && draft === null && payUntil === null
  const retryAfterSeconds = isWaiting ? approvalSeconds : undefined
  throw failPaying('approved-payment-not-open', { paymentStatus: status, retryAfterSeconds })
}

async function sign(
  ctx: Pick<Ctx, 'actor' | 'audit' | 'clock' | 'deposits' | 'idempotency' | 'tenant'>,
  tx: Tx,
  transferId: TransferId,
  planned: Planned,
): Promise<void> {
  const { plan, message } = planned
  const { network, source, coin, rawAmount } = plan
  const { masterWalletId } = source
  await lockOwners(tx, [{ network, owner: source.address }])
  const row = await lockTransfer(tx, transferId)
  refuseClosed(ctx, row, await lockPayment(tx, transferId))
  const [isCovered] = await areCovered(ctx, tx, [claimOf(ctx.tenant, plan, transferId)])
  if (isCovered !== true) throw contendedBy(plan)
  const amount = { subjectId: transferId, rawAmount, decimals: coin.decimals }
  const movement = { masterWalletId, operation: 'pay', token: coin.symbol, recipient: row.toAddress } as const
  await reservePolicyAgain(ctx, tx, { ...movement, ...amount })
  await replaceAmount(tx, amount)
  await setAmount(tx, transferId, rawAmount)
  const nonce = hexToBytes(message.draft.authorization.nonce)
  await authorizeReservation(tx, transferId, { rawAmount, nonce, signedBy: actorId(ctx.actor) })
  await refuseTooMany(ctx, tx, plan)
  await setMessage(tx, { transferId, method: methodOf(planned), message })
  await watch(ctx, tx, transferId, planned)
  await commitKeyAndAudit(ctx, tx, transferId, planned)
}

/**
 * Relay purpose of payments of a 402, which their payees send and which are only watched here: the chain decides whether the money moved, or
 * can never move.
 */
export function watchedPayments(deps: Pick<Deps, 'clock' | 'db' | 'eventsCommitted' | 'random'>): RelayPurpose {
  const ctx = systemCtx(deps)
  return {
    purpose: paymentPurpose,
    share: 0,
    refusal: 'wait',
    expiry: 'final',
    lock: async (tx, subjectIds) => void (await lockTransfers(tx, subjectIds.map(transferIdOf))),
    onSettled: (tx, settled) => settleRelays(ctx, tx, settled),
    async onFailed(tx, failed) {
      const ends = failed.map(({ relay, fault }) => ({ transferId: transferOf(relay), fault: reasonOf(fault) }))
      await endAll(ctx, tx, ends)
    },
    onSpent: async () => {},
  }
}
