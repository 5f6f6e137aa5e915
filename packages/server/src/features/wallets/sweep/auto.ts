import { type Network, requireNetwork } from '@purser/protocol'
import { instantOf } from '../../../platform/clock.ts'
import { inParallel } from '../../../platform/in-parallel.ts'
import type { RecurringTask, RecurringTaskByNetwork } from '../../../platform/recurring-task.ts'
import { forTenant } from '../../../platform/work/runner.ts'
import { gasLeft } from '../../plans/index.ts'
import { type DueWallet, isAnySweepDue, listDue, markDue } from '../managed/auto-store.ts'
import type { Ctx, Deps } from '../ports.ts'
import { signSweeps } from './relay.ts'
import { collectCandidates, storeSweep } from './request.ts'
import { sweepChildrenMax } from './schema.ts'
import { markScannedTo } from './store.ts'
import { gasOfEach, requireGasPrice, sweepTerms } from './sweeps.ts'
import { sweepOnTempo } from './tempo.ts'

type System = Omit<Ctx, 'tenant'>

const perRunMax = 20
/** Wallets of a network that are swept at the same time: a scan of one with thousands of children takes long. */
const atOnce = 4
/** Delay before a wallet is tried again whose sweep failed. */
const retryMs = 60_000
/** Delay before a wallet is tried again for whose children the day has no gas left. */
const budgetMs = 3_600_000

/** Runs the automatic sweeps that are due. Idempotent: a child's token is moved by one authorization at a time. */
export const autoSweep: RecurringTaskByNetwork<Deps> = {
  name: 'wallets.auto-sweep',
  everyMs: 5_000,
  networks: ({ chains }) => chains.configured,
  isDue: (networks, { clock }) => isAnySweepDue(networks, clock.now()),
  async runOn(ctx, { name }) {
    const list = { now: ctx.clock.now(), most: perRunMax, cursors: ctx.sweepCursors }
    const due = await ctx.db.tx((tx) => listDue(tx, name, list), { readsInOrder: true })
    await inParallel(due, atOnce, async (wallet) => {
      const nextMs = await sweepOne(ctx, wallet).catch((error: unknown) => {
        ctx.log.warn({ err: error, walletId: wallet.id }, 'the automatic sweep of a wallet failed; retrying')
        return retryMs
      })
      await markDue(ctx.db, wallet, instantOf(ctx.clock.now().getTime() + nextMs))
    })
  },
}

/**
 * Returns after how many milliseconds the wallet is due again: immediately if children remain. It takes as many children as the day has gas for.
 * Nothing is signed for a suspended organisation; its wallets are looked at again as often as they would be swept.
 */
async function sweepOne(system: System, wallet: DueWallet): Promise<number> {
  const { organisationId, environment, autoSweep: wanted, isSuspended } = wallet
  if (isSuspended) return wanted.everyMinutes * 60_000
  const ctx = forTenant(system, { organisationId, environment })
  await ctx.gasPrices.recentReads([requireNetwork(wallet.network)])
  const terms = sweepTerms(ctx, wallet, wanted, 'automatic')
  requireGasPrice(ctx, terms.network)
  const most = await countAffordable(ctx, terms.network)
  if (most === 0) {
    const { id, network } = wallet
    ctx.log.warn(
      { walletId: id, network },
      'a wallet is not swept now: the rest of the day’s gas does not pay for a child',
    )
    return budgetMs
  }
  const candidates = await collectCandidates(ctx, terms, most)
  if (candidates.funded.length > 0) await storeSweep(ctx, terms, candidates)
  else if (candidates.scannedTo !== undefined) {
    const { scannedTo } = candidates
    await markScannedTo(ctx.db, ctx.tenant, { walletId: wallet.id, token: terms.token.symbol, scannedTo })
  }
  return (candidates.scannedTo ?? 0) > 0 ? 0 : wanted.everyMinutes * 60_000
}

async function countAffordable(
  ctx: Pick<Ctx, 'clock' | 'db' | 'gasPrices' | 'settleNanoUsdPerDayMax' | 'tenant'>,
  network: Network,
): Promise<number> {
  const each = ctx.gasPrices.costOf(network, gasOfEach(network))
  return affordableChildren({ each, day: ctx.settleNanoUsdPerDayMax, left: await gasLeft(ctx, network) })
}

/**
 * Returns for how many children the day has gas left. Automatic sweeps leave half of the day's budget to payments and to requested sweeps; a child that
 * costs more than half may use a day of which nothing was used. One payment after midnight UTC ends that exception for the day.
 */
export function affordableChildren({
  each,
  day,
  left,
}: { readonly [name in 'each' | 'day' | 'left']: bigint }): number {
  const half = left - day / 2n
  if (half < each) return left >= day && left >= each ? 1 : 0
  return each === 0n ? sweepChildrenMax : Math.min(sweepChildrenMax, Number(half / each))
}

/** Recurring work of sweeps. */
export const walletSweeps: readonly (RecurringTask<Deps> | RecurringTaskByNetwork<Deps>)[] = [
  autoSweep,
  signSweeps,
  sweepOnTempo,
]
