import { l1FeeOf, type Network } from '@purser/protocol'
import { plainGas } from '../../chain/fees/costs.ts'
import { instantOf } from '../../platform/clock.ts'
import { isProblem } from '../../platform/errors.ts'
import type { RecurringTask } from '../../platform/recurring-task.ts'
import { forTenant } from '../../platform/work/runner.ts'
import { topUpOf } from '../funds/index.ts'
import { lockPayer, type Payer, readPayer, storeAuxiliary } from './auxiliary.ts'
import type { Ctx, Deps } from './ports.ts'
import { listWaiting, mayAnyWait, type WaitingRow } from './refill-store.ts'
import { listSteps, lockTransfers } from './store.ts'

type Work = Omit<Ctx, 'tenant'>

/** Milliseconds for which a step may wait for a block before its child is checked. */
const waitMs = 5_000

/**
 * Sends children another top-up if fees have risen and their call costs more than they have. If the child can pay the current fee, its lane
 * raises the fee by itself. Idempotent: the transfer's lock permits one top-up at a time.
 */
export const refillChildren: RecurringTask<Deps> = {
  name: 'transfers.refill-children',
  everyMs: 2_000,
  isDue: ({ chains }) => mayAnyWait(withCoinOf(chains).map(({ name }) => name)),
  async run(ctx) {
    await Promise.all(withCoinOf(ctx.chains).map((network) => refillOn(ctx, network)))
  },
}

function withCoinOf({ configured }: Work['chains']): readonly Network[] {
  return configured.filter(({ nativeCoin }) => nativeCoin !== null)
}

/**
 * Tops up the children of one network. If its node is unavailable, the run ends, and other networks are not affected. The next run starts after the
 * child at which it ended, so that the same children are not always first.
 */
async function refillOn(ctx: Work, network: Network): Promise<void> {
  const before = instantOf(ctx.clock.now().getTime() - waitMs)
  const start = ctx.refillCursors.get(network.name) ?? ''
  ctx.refillCursors.delete(network.name)
  for (let after = start; ; ) {
    const page = await listWaiting(ctx.db, { network: network.name, before, after })
    for (const waiting of page) {
      if (await refillSafely(ctx, network, waiting)) continue
      ctx.refillCursors.set(network.name, waiting.sender)
      return
    }
    const last = page.at(-1)
    if (last === undefined) return
    after = last.sender
  }
}

/** Tops up a child. Returns false if the network's node is unavailable; after another failure the next child can be checked. */
async function refillSafely(ctx: Work, network: Network, waiting: WaitingRow): Promise<boolean> {
  try {
    await refill(ctx, network, waiting)
    return true
  } catch (error) {
    ctx.log.warn({ err: error, transferId: waiting.transferId }, 'a child could not be sent gas; retrying')
    return !isProblem(error, 'chain-unavailable')
  }
}

async function refill(ctx: Work, network: Network, waiting: WaitingRow): Promise<void> {
  const { tenant } = forTenant(ctx, waiting)
  const source = await ctx.findSource(ctx.db, tenant, waiting.walletId)
  if (source === undefined) throw new Error('a transfer from a wallet that does not exist')
  const payer = await readPayer(ctx, tenant, { network, source, payer: 'master' })
  const value = await lackOf(ctx, waiting, payer)
  if (value === 0n) return
  await ctx.lanes.prepare(network, source.masterAddress)
  if (!(await storeRefill(ctx, waiting, { payer, value })))
    ctx.log.warn({ transferId: waiting.transferId, value }, 'a master cannot pay for the gas that its child lacks')
}

/** Coin that the child lacks for the gas of its next call, in wei; zero while a block would include it at the fee that it can pay. */
async function lackOf(
  ctx: Pick<Work, 'chains' | 'log'>,
  waiting: WaitingRow,
  { asset: { network }, snapshot: { fees } }: Payer,
): Promise<bigint> {
  const { transferId, sender, nonce, value, gasLimit, dataBytes } = waiting
  const chain = ctx.chains.on(network)
  const [[holding], next] = await Promise.all([
    chain.agreedHoldings([{ account: sender, tokens: [] }]),
    chain.transactionCount(sender),
  ])
  const native = holding?.native ?? 0n
  const l1Fee = l1FeeOf(fees.l1Fee, dataBytes)
  if (next !== nonce || native >= value + l1Fee + gasLimit * fees.baseFee) return 0n
  const dearest = fees.maxFee > waiting.maxFee ? fees.maxFee : waiting.maxFee
  const lack = topUpOf({ gas: l1Fee + gasLimit * dearest, value, native })
  if (lack === 0n) ctx.log.warn({ transferId, value, native }, 'a child lacks coin of the amount that it sends')
  return lack
}

/** Stores the top-up under the master's lock, then the transfer's; returns whether the master can pay for it. */
function storeRefill(
  ctx: Pick<Work, 'clock' | 'db' | 'deposits' | 'lanes'>,
  { transferId, isRevoke, sender: toAddress }: WaitingRow,
  { payer, value }: { readonly payer: Payer; readonly value: bigint },
): Promise<boolean> {
  return ctx.db.tx(async (tx) => {
    await lockPayer(tx, payer)
    const [transfer] = await lockTransfers(tx, [transferId])
    const steps = await listSteps(tx, transferId)
    const isUnderWay = steps.some(({ kind, doneAt }) => kind === 'refill' && doneAt === null)
    if (transfer === undefined || (transfer.endedAt !== null && !isRevoke) || isUnderWay) return true
    const step = { kind: 'refill', toAddress, data: '0x', value, gasLimit: plainGas } as const
    return storeAuxiliary(ctx, tx, { transferId, payer }, step)
  })
}
