import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { lockSources, type OutgoingMovement, type PolicyOperation, reservePolicies } from '../wallets/index.ts'
import { transferPurpose } from './follow.ts'
import { storeGasless } from './gasless/terms.ts'
import type { Answered } from './outcome-store.ts'
import type { TransferPlan } from './plan.ts'
import { takeQuotes } from './quote-use.ts'
import { haveRoom, overtakenBy } from './room.ts'
import type { NewTransfer } from './schema.ts'
import { insertSteps, insertTransfers, type StoredTransfer, type TransferId, type TransferPurpose } from './store.ts'

/** A planned transfer that is to be made. */
export interface Intent {
  readonly ctx: Ctx
  readonly request: NewTransfer
  readonly plan: TransferPlan
  readonly purpose: TransferPurpose
  /** As what the spend policy judges it. A withdrawal's is not counted: the withdrawal was. */
  readonly operation: PolicyOperation
  /** What its caller is told before there is an outcome; undefined for one who waits for it. */
  readonly answered: Answered | undefined
}

export type Outcome = TransferId | Error

/** Some that cannot be made when others are written already, and why: the transaction is undone, and the others are made without them. */
export class LeftOut extends Error {
  readonly causes: ReadonlyMap<Intent, Error>
  constructor(causes: ReadonlyMap<Intent, Error>) {
    super('transfers were left out')
    this.causes = causes
  }
}

/**
 * Stores planned transfers of one tenant, their steps and first nonces in the caller's transaction; once that commits, the lanes carry them
 * out. A gasless one has an authorization to be signed in the place of both. Answers of each its id or why it was refused:
 * `insufficient-balance` or `policy-denied`, which takes nothing from the others. Throws `LeftOut`.
 */
export async function storeTransfers(tx: Tx, intents: readonly Intent[]): Promise<readonly Outcome[]> {
  const [first] = intents
  if (first === undefined) return []
  const { ctx } = first
  await lockPayers(ctx, tx, intents)
  const rooms = await haveRoom(
    ctx,
    tx,
    intents.map(({ plan }) => plan),
  )
  const named = intents.map((intent) => ({ ...intent, intent, transferId: newId('wtx', intent.ctx) }))
  const fitting = named.filter((_, index) => rooms[index])
  const counted = fitting.filter(({ purpose }) => purpose === 'transfer')
  const judged = await reservePolicies(ctx, tx, counted.map(movementOf))
  const denied = new Map(
    counted.flatMap(({ transferId }, index) => {
      const denial = judged[index]
      return denial === undefined ? [] : [[transferId, denial] as const]
    }),
  )
  const made = fitting.filter(({ transferId }) => !denied.has(transferId))
  await store(ctx, tx, made)
  return named.map(({ transferId, plan }, index) =>
    rooms[index] ? (denied.get(transferId) ?? transferId) : overtakenBy(plan),
  )
}

/** What pays for gas is weighed too, and a master pays for all its children: always after the wallets' own, so that none wait crosswise. */
async function lockPayers({ tenant }: Ctx, tx: Tx, intents: readonly Intent[]): Promise<void> {
  await lockSources(
    tx,
    tenant,
    intents.map(({ plan }) => plan.source.id),
  )
  const masters = intents.flatMap(({ plan: { source, steps } }) =>
    steps.some(({ sender }) => sender === source.masterAddress) ? [source.masterAddress] : [],
  )
  if (masters.length > 0) await lockSources(tx, tenant, masters)
}

type Named = Intent & { readonly intent: Intent; readonly transferId: TransferId }

async function store(ctx: Ctx, tx: Tx, made: readonly Named[]): Promise<void> {
  if (made.length === 0) return
  const unquoted = await takeQuotes(ctx, tx, made)
  if (unquoted.size > 0) throw new LeftOut(unquoted)
  await insertTransfers(tx, ctx.tenant, made.map(rowOf))
  const own = made.filter(({ plan }) => plan.steps.length > 0)
  if (own.length > 0) await storeSteps(ctx, tx, own)
  const over = await storeGasless(
    tx,
    made.filter(({ plan }) => plan.steps.length === 0),
  )
  if (over.length > 0) throw new LeftOut(new Map(over.map(({ intent, plan }) => [intent, overtakenBy(plan)])))
}

/** Gives the first steps their nonces; those behind them get theirs when it is their turn. */
async function storeSteps(ctx: Ctx, tx: Tx, made: readonly Named[]): Promise<void> {
  const firsts = made.map(
    ({
      plan: {
        network,
        steps: [step],
      },
    }) => {
      if (step === undefined) throw new Error('a transfer without steps')
      return { account: step.sender, planned: { ...step, network, purpose: transferPurpose } }
    },
  )
  const transactionIds = await ctx.lanes.planAll(tx, firsts)
  await insertSteps(
    tx,
    made.flatMap(({ transferId, plan: { steps } }, index) =>
      steps.map(({ to: toAddress, ...step }, position) => {
        const transactionId = position === 0 ? (transactionIds[index] ?? null) : null
        return { transferId, position, ...step, toAddress, transactionId }
      }),
    ),
  )
  for (const network of new Set(made.map(({ plan }) => plan.network))) tx.afterCommit(() => ctx.lanes.notify(network))
}

/** What the wallet's spend policy judges. */
function movementOf({
  request,
  plan,
  operation,
  transferId,
}: Named): OutgoingMovement & { readonly subjectId: string } {
  return { ...outgoing(request, plan), operation, subjectId: transferId }
}

/** The same of a transfer that is only asked about. */
export function outgoing({ toAddress }: NewTransfer, { source, coin, rawAmount }: TransferPlan): OutgoingMovement {
  const { symbol: token, decimals } = coin
  const { masterWalletId } = source
  return { masterWalletId, operation: 'transfer', token, rawAmount, decimals, recipient: toAddress }
}

function rowOf({ ctx, transferId, request, plan, purpose, answered }: Named): StoredTransfer {
  const { source, network, target, coin, toCoin, rawAmount, fromChain, route, routeReason, quote } = plan
  return {
    id: transferId,
    walletId: source.id,
    fromAddress: source.address,
    toAddress: request.toAddress,
    fromChain,
    fromNetwork: network.name,
    toChain: request.toChain,
    toNetwork: target.name,
    fromToken: request.fromToken,
    toToken: request.toToken,
    decimals: coin.decimals,
    rawAmount,
    route,
    routeReason,
    partner: quote?.partner ?? null,
    partnerReference: quote?.reference ?? null,
    quoteExpiresAt: quote?.expiresAt ?? null,
    toDecimals: quote === undefined ? null : toCoin.decimals,
    rawOut: quote?.rawOut ?? null,
    rawOutMin: quote?.rawOutMin ?? null,
    reference: request.reference ?? null,
    metadata: request.metadata ?? {},
    purpose,
    answered: answered ?? null,
    createdAt: ctx.clock.now(),
  }
}
