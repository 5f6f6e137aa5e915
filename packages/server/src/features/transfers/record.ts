import { formatAmount, sameAddress } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { newId } from '../../platform/ids.ts'
import { areCovered, type Coin, contended, lockOwners } from '../funds/index.ts'
import { countGas, type OutgoingMovement, type PolicyOperation, reservePolicies } from '../wallets/index.ts'
import { claimOf, gasCostOf } from './claim.ts'
import { fail } from './errors.ts'
import { storeGasless } from './gasless/terms.ts'
import type { Answered } from './outcome-store.ts'
import type { TransferPlan } from './plan.ts'
import { takeQuotes } from './quote-use.ts'
import type { NewTransfer } from './schema.ts'
import { storeSteps } from './steps.ts'
import { insertTransfers, type StoredTransfer, type TransferId, type TransferPurpose } from './store.ts'

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
  const claims = intents.map(({ plan }) => claimOf(ctx.tenant, plan))
  const owners = claims.flatMap(({ wants }) => wants.map(({ place }) => place))
  await lockOwners(
    tx,
    owners.map(({ network, owner }) => ({ network: network.name, owner })),
  )
  const covered = await areCovered(ctx, tx, claims)
  const named = intents.map((intent) => ({ ...intent, intent, transferId: newId('wtx', intent.ctx) }))
  const fitting = named.filter((_, index) => covered[index])
  const counted = fitting.filter(({ purpose }) => purpose === 'transfer')
  const judged = await reservePolicies(ctx, tx, counted.map(movementOf))
  const denied = new Map(
    counted.flatMap(({ transferId }, index) => {
      const denial = judged[index]
      return denial === undefined ? [] : [[transferId, denial] as const]
    }),
  )
  const made = fitting.filter(({ transferId }) => !denied.has(transferId))
  for (const { purpose, plan, transferId: subjectId } of made) {
    const gas = gasCostOf(plan)
    const { masterWalletId } = plan.source
    if (purpose === 'withdrawal' && gas !== undefined) await countGas(ctx, tx, { masterWalletId, subjectId, gas })
  }
  await store(ctx, tx, made)
  return named.map(({ transferId, plan }, index) =>
    covered[index] ? (denied.get(transferId) ?? transferId) : contendedBy(plan),
  )
}

type Named = Intent & { readonly intent: Intent; readonly transferId: TransferId }

async function store(ctx: Ctx, tx: Tx, made: readonly Named[]): Promise<void> {
  if (made.length === 0) return
  const unquoted = await takeQuotes(ctx, tx, made)
  if (unquoted.size > 0) throw new LeftOut(unquoted)
  await insertTransfers(tx, ctx.tenant, made.map(rowOf))
  const gasless = made.filter(({ plan }) => plan.steps.length === 0)
  const { nonces, over } = await storeGasless(tx, gasless)
  if (over.length > 0) throw new LeftOut(new Map(over.map(({ intent, plan }) => [intent, contendedBy(plan)])))
  await storeSteps(ctx, tx, made, nonces)
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
export function outgoing({ toAddress }: NewTransfer, plan: TransferPlan): OutgoingMovement {
  const { source, coin, rawAmount, route } = plan
  const { symbol: token, decimals } = coin
  const { masterWalletId } = source
  const isToOwnMaster =
    route === 'direct' && source.address !== source.masterAddress && sameAddress(toAddress, source.masterAddress)
  const movement = { masterWalletId, operation: 'transfer', token, rawAmount, decimals, recipient: toAddress } as const
  return { ...movement, isToOwnMaster, gas: gasCostOf(plan) }
}

/** The refusal where other requests reserved the money after the plan's snapshot; the plan is made again (`retryOnContention`). */
export function contendedBy({ coin, rawAmount, rawFee, feeCoin }: TransferPlan): Error {
  const shortage = (of: Coin, raw: bigint) => ({
    token: of.symbol,
    required: formatAmount(raw, of.decimals),
    available: '0',
  })
  const isOne = coin.symbol === feeCoin.symbol || rawFee === 0n
  const balances = isOne ? [shortage(coin, rawAmount + rawFee)] : [shortage(coin, rawAmount), shortage(feeCoin, rawFee)]
  return fail('insufficient-balance', { balances }, contended)
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
