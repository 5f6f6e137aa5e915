import type { Recurring } from '../../../platform/job.ts'
import { relays } from '../../relayer/index.ts'
import { signGasless } from '../gasless.ts'
import type { Ctx, Deps } from '../ports.ts'
import { endPlanned, networkOf } from './outcome.ts'
import { sweepPurpose } from './relay.ts'
import { isAnyPlanned, type SignedTransfer, signing, takeUnsigned, type UnsignedRow } from './relay-store.ts'

type System = Omit<Ctx, 'tenant'>

const signedPerRunMax = 200

/**
 * Signs transfers with their children's keys and adds them to the relayer's queue, in one statement. Idempotent: of two signatures with one
 * nonce the first is stored, and a token accepts a nonce once.
 */
export const signSweeps: Recurring<Deps> = {
  name: 'wallets.sign-sweeps',
  everyMs: 300,
  isDue: (deps) => isAnyPlanned(networksOf(deps)),
  async run(ctx) {
    while ((await signSome(ctx)) === signedPerRunMax);
  },
}

function networksOf({ chains }: Pick<Deps, 'chains'>): readonly string[] {
  return chains.configured.filter(({ settlesEip3009 }) => settlesEip3009).map(({ name }) => name)
}

/** Returns how many were signed. Transfers that fail are retried after those with fewer attempts. */
async function signSome(ctx: System): Promise<number> {
  const planned = await takeUnsigned(ctx.db, networksOf(ctx), signedPerRunMax)
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
