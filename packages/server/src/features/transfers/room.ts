import { formatAmount } from '@purser/protocol'
import type { Ctx } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import { isProblem } from '../../platform/errors.ts'
import { type Drawn, sumDrawnSince } from './drawn-store.ts'
import { fail } from './errors.ts'
import { heldMore } from './held.ts'
import type { Left, PlannedStep, TransferPlan } from './plan.ts'
import { amountUnderSweep } from './under-sweep.ts'
import { type Coin, feeInToken, feeOfCall } from './weigh.ts'

/** How often a wallet is weighed for one transfer while others draw on it. */
const attemptsMax = 8
/** Marks a refusal that is of the moment: others drew on the wallet since it was weighed. */
const overtaken = new Error('overtaken')

/** Does again what others overtook, from the weighing on: so that what is refused is refused for what there is. */
export async function notOvertaken<T>(work: () => Promise<T>): Promise<T> {
  for (let attempt = 1; ; attempt++) {
    try {
      return await work()
    } catch (error) {
      if (attempt === attemptsMax || !isProblem(error, 'insufficient-balance') || error.cause !== overtaken) throw error
    }
  }
}

/** What came to a wallet since it was weighed, without those that are judged with it. */
interface Since {
  /** Whether a sweep takes of it what it did not then: how much is left of it nobody here knows. */
  readonly isSwept: boolean
  /** How much more of the token screening holds. */
  readonly held: bigint
  readonly drawn: Drawn
}

/**
 * Whether what each wallet was found to have still covers its transfer, under the locks of those who pay, one after the other. Everything that
 * came since counts, also what a block took in meanwhile: the balance that was read may be from before it. So does what screening holds by
 * now: a deposit that was seen meanwhile, or whose sender was, may be in the balance that was read.
 */
export async function haveRoom(ctx: Ctx, tx: Tx, plans: readonly TransferPlan[]): Promise<boolean[]> {
  const known = await sinceWeighed(ctx, tx, plans)
  const taken: TransferPlan[] = []
  const verdicts: boolean[] = []
  for (const plan of plans) {
    const since = known.get(nameOf(plan))
    if (since === undefined) throw new Error('a wallet that was not looked at again')
    const drawn = taken.map((other) => drawnBy(other, plan)).reduce(plus, since.drawn)
    const isRoom =
      !since.isSwept && covers(plan, { ...plan.room.left, token: plan.room.left.token - since.held }, drawn)
    if (isRoom) taken.push(plan)
    verdicts.push(isRoom)
  }
  return verdicts
}

/** Plans of one name were weighed at the same moment, and only what each of them takes is another. */
function nameOf({ source, network, coin, room: { since, prices, held, sweeping } }: TransferPlan): string {
  const weighed = [
    since.source,
    since.master,
    since.authorised,
    prices.maxFee,
    prices.l1Fee,
    held.frozen,
    held.unscreened,
    sweeping,
  ]
  return [source.id, network.name, coin.symbol, ...weighed].join(' ')
}

/** By the name of each plan, the same ones once. */
async function sinceWeighed(
  { tenant }: Ctx,
  tx: Tx,
  plans: readonly TransferPlan[],
): Promise<ReadonlyMap<string, Since>> {
  const asked = new Map(plans.map((plan) => [nameOf(plan), plan]))
  const each = [...asked.values()]
  const held = await heldMore(
    tx,
    each.map((place) => ({ tenant, place, before: place.room.held })),
  )
  const drawn = await sumDrawnSince(
    tx,
    each.map(({ source, network, coin, room: { since, prices } }) => {
      return {
        network: network.name,
        source: source.address,
        master: source.masterAddress,
        token: coin.symbol,
        since,
        prices,
      }
    }),
  )
  const found = new Map<string, Since>()
  for (const [index, [name, plan]] of [...asked].entries()) {
    const isSwept = (await amountUnderSweep(tx, plan)) > plan.room.sweeping
    const own = drawn[index]
    if (own !== undefined) found.set(name, { isSwept, held: held[index] ?? 0n, drawn: own })
  }
  return found
}

/** What a transfer that was let through a moment ago draws on the wallet of another. */
function drawnBy(taken: TransferPlan, { source, network, coin, room: { prices } }: TransferPlan): Drawn {
  if (taken.network.name !== network.name) return { token: 0n, source: 0n, master: 0n }
  const isSame = taken.source.address === source.address && taken.coin.symbol === coin.symbol
  const cost = (step: PlannedStep) => step.value + feeOfCall(step, prices)
  const sum = (read: (step: PlannedStep) => bigint) => taken.steps.reduce((all, step) => all + read(step), 0n)
  return {
    token: isSame ? taken.rawAmount : 0n,
    source: sum((step) => {
      if (step.sender === source.address) return cost(step)
      return step.kind === 'top-up' && step.to === source.address ? -step.value : 0n
    }),
    master: sum((step) => (step.sender === source.masterAddress ? cost(step) : 0n)),
  }
}

function plus(one: Drawn, other: Drawn): Drawn {
  return { token: one.token + other.token, source: one.source + other.source, master: one.master + other.master }
}

function covers({ network, coin, steps }: TransferPlan, left: Left, drawn: Drawn): boolean {
  if (network.nativeCoin === null) return left.token >= drawn.token + feeInToken(drawn.source, 1n, coin.decimals)
  if (coin.address !== undefined && left.token < drawn.token) return false
  if (steps.length === 0) return true
  if (left.native < drawn.source) return false
  return !steps.some(({ kind }) => kind === 'top-up') || left.masterNative >= drawn.master
}

/** So many others draw on the wallet that it was never found at rest; none of them is kept waiting by this one. */
export function overtakenBy({ coin, rawAmount, rawFee, feeCoin }: TransferPlan): Error {
  const told = (of: Coin, raw: bigint) => ({
    token: of.symbol,
    required: formatAmount(raw, of.decimals),
    available: '0',
  })
  const isOne = coin.symbol === feeCoin.symbol || rawFee === 0n
  const balances = isOne ? [told(coin, rawAmount + rawFee)] : [told(coin, rawAmount), told(feeCoin, rawFee)]
  return fail('insufficient-balance', { balances }, overtaken)
}
