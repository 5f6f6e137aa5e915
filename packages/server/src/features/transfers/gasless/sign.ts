import { networkByName } from '@purser/protocol'
import type { Recurring } from '../../../platform/job.ts'
import { relays } from '../../relayer/index.ts'
import { createAccountSigners, signGasless } from '../../wallets/index.ts'
import type { Ctx, Deps } from '../ports.ts'
import { lockTransfer } from '../store.ts'
import { endGasless } from './relay.ts'
import {
  gaslessPurpose,
  isAnyUnsigned,
  lockUnsigned,
  type SignedTransfer,
  signing,
  takeUnsigned,
  type UnsignedRow,
} from './store.ts'

type System = Omit<Ctx, 'tenant'>

const signedPerRunMax = 200

/**
 * Signs gasless transfers with their wallets and adds them to the relayer's queue, in one statement. Idempotent: of two signatures with one
 * nonce the first is stored, and a token accepts a nonce once.
 */
export const signTransfers: Recurring<Deps> = {
  name: 'transfers.sign-gasless',
  everyMs: 150,
  isDue: (deps) => isAnyUnsigned(networksOf(deps)),
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
  const signerOf = createAccountSigners(ctx)
  const tried = await Promise.all(planned.map((transfer) => signOne(ctx, signerOf, transfer)))
  const signed = tried.filter((one) => one !== undefined)
  const failures = await relays.enqueueEach(ctx.db, gaslessPurpose, signed, signing)
  for (const [index, failure] of failures.entries())
    if (failure !== undefined)
      ctx.log.error({ err: failure, transferId: signed[index]?.transferId }, 'a transfer was not added to the queue')
  return signed.length
}

/** Ends a transfer that expired without a signature: nobody can have sent it. */
async function signOne(
  ctx: System,
  signerOf: ReturnType<typeof createAccountSigners>,
  transfer: UnsignedRow,
): Promise<SignedTransfer | undefined> {
  const { transferId, fromAddress } = transfer
  try {
    const network = networkByName(transfer.network)
    const signer = await signerOf(fromAddress)
    if (network === undefined || signer === undefined) throw new Error('no signer for the address')
    return { transferId, payload: await signGasless(signer, network, transfer) }
  } catch (error) {
    ctx.log.error({ err: error, transferId }, 'a transfer could not be signed; retrying')
    if (transfer.isPast) await endUnsigned(ctx, transfer)
    return undefined
  }
}

function endUnsigned(ctx: System, { transferId }: UnsignedRow): Promise<void> {
  return ctx.db.tx(async (tx) => {
    await lockTransfer(tx, transferId)
    if (await lockUnsigned(tx, transferId)) await endGasless(ctx, tx, [{ transferId, fault: 'authorization-expired' }])
  })
}
