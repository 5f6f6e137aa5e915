import type { Network } from '@purser/protocol'
import type { Recurring } from '../../../platform/job.ts'
import { relays } from '../../relayer/index.ts'
import { signGasless } from '../gasless.ts'
import type { Ctx, Deps } from '../ports.ts'
import { endPlanned, networkOf } from './outcome.ts'
import { sweepPurpose } from './relay.ts'
import { type SignedTransfer, signing, takeUnsigned, type UnsignedRow } from './relay-store.ts'

type System = Omit<Ctx, 'tenant'>

const signedPerRunMax = 200

/**
 * Signs transfers with their children's keys and adds them to the relayer's queue, in one statement. Idempotent: of two signatures with one
 * nonce the first is stored, and a token accepts a nonce once.
 */
export const signSweeps: Recurring<Deps> = {
  name: 'wallets.sign-sweeps',
  everyMs: 300,
  async run(ctx) {
    const networks = ctx.chains.configured.filter(({ settlesEip3009 }) => settlesEip3009)
    while ((await signSome(ctx, networks)) === signedPerRunMax);
  },
}

/** Returns how many were signed. Transfers that fail are retried after those with fewer attempts. */
async function signSome(ctx: System, networks: readonly Network[]): Promise<number> {
  const names = networks.map(({ name }) => name)
  const planned = await takeUnsigned(ctx.db, names, signedPerRunMax)
  if (planned.length === 0) return 0
  const tried = await Promise.all(planned.map((transfer) => signOne(ctx, transfer)))
  const signed = tried.filter((one) => one !== undefined)
  const failures = await relays.enqueueEach(ctx.db, sweepPurpose, signed, signing)
  for (const [index, failure] of failures.entries())
    if (failure !== undefined)
      ctx.log.error({ err: failure, sweepId: signed[index]?.sweepId }, 'a transfer was not added to the queue')
  return signed.length
}

/** Ends a transfer that expired without a signature: nobody can have sent it. */
async function signOne(ctx: System, transfer: UnsignedRow): Promise<SignedTransfer | undefined> {
  const { sweepId, childAddressId, organisationId, environment, account, childIndex: index } = transfer
  try {
    const signer = ctx.walletKeys.signer(
      { organisationId, environment },
      { account, index, address: transfer.fromAddress },
    )
    return { sweepId, childAddressId, payload: await signGasless(signer, networkOf(transfer.network), transfer) }
  } catch (error) {
    ctx.log.error({ err: error, sweepId }, 'a transfer of a sweep could not be signed; retrying')
    if (transfer.isPast) await endPlanned(ctx, transfer, 'authorization-expired')
    return undefined
  }
}
