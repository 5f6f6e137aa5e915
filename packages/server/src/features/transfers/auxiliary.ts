import type { Hex, Network } from '@purser/protocol'
import { bytesOf, feeOfCall } from '../../chain/fees/costs.ts'
import { instantOf } from '../../platform/clock.ts'
import type { Tenant } from '../../platform/ctx.ts'
import type { Tx } from '../../platform/db/db.ts'
import {
  areCovered,
  insertReservations,
  lockOwners,
  nativeCoinOf,
  type Snapshot,
  type WalletAsset,
} from '../funds/index.ts'
import { countGas, replaceClaimGas, type SourceWallet } from '../wallets/index.ts'
import { assetOf } from './plan.ts'
import type { Ctx } from './ports.ts'
import { insertSteps, listSteps, type StepRow, type TransferId, transferPurpose } from './store.ts'

/** The account that pays for an auxiliary step, and its available coin. */
export interface Payer {
  /** The wallet whose spend policy counts the gas. */
  readonly masterWalletId: SourceWallet['masterWalletId']
  readonly asset: WalletAsset
  readonly snapshot: Snapshot
  /** Available coin in wei, as of the snapshot. */
  readonly available: bigint
}

/** Reads the available coin of the wallet, or of the master that pays for it. */
export async function readPayer(
  ctx: Pick<Ctx, 'readFunds'>,
  tenant: Tenant,
  {
    network,
    source,
    payer,
  }: { readonly network: Network; readonly source: SourceWallet; readonly payer: 'source' | 'master' },
): Promise<Payer> {
  const coin = nativeCoinOf(network)
  if (coin === undefined) throw new Error(`${network.name} has no coin to pay with`)
  const asset = assetOf(tenant, { network, source }, { payer, coin })
  const { snapshot, spendable } = await ctx.readFunds(network, [asset])
  return { masterWalletId: source.masterWalletId, asset, snapshot, available: spendable[0]?.available ?? 0n }
}

/** Locks the payer's funds; call it before the transfer is locked. */
export function lockPayer(tx: Tx, { asset }: Payer): Promise<void> {
  return lockOwners(tx, [asset])
}

export interface AuxiliaryStep extends Pick<StepRow, 'kind' | 'toAddress' | 'value' | 'gasLimit'> {
  readonly kind: 'claim' | 'refill' | 'revoke'
  readonly data: Hex
}

/**
 * Adds an auxiliary step to a transfer, with its nonce and reservations. Returns false, and stores nothing, if the payer cannot pay for it.
 * The caller has locked the payer and the transfer.
 */
export async function storeAuxiliary(
  ctx: Pick<Ctx, 'lanes' | 'deposits' | 'clock'>,
  tx: Tx,
  { transferId, payer }: { readonly transferId: TransferId; readonly payer: Payer },
  step: AuxiliaryStep,
): Promise<boolean> {
  const { asset, snapshot } = payer
  const { network, owner, coin, tenant } = asset
  const { kind, toAddress, data, value, gasLimit } = step
  const want = { asset, rawAmount: value, gasLimit, dataBytes: bytesOf(data) }
  const [isCovered] = await areCovered(ctx, tx, [{ snapshot, wants: [want] }])
  if (isCovered !== true) return false
  const position = (await listSteps(tx, transferId)).length
  const planned = { network, to: toAddress, data, value, gasLimit, purpose: transferPurpose }
  const transactionId = await ctx.lanes.plan(tx, owner, planned)
  await insertSteps(tx, [{ transferId, position, sender: owner, transactionId, ...step }])
  const reason = kind === 'refill' ? 'top-up' : 'gas'
  const subject = { subjectId: transferId, part: position, reason, transactionId, authorizationNonce: null } as const
  await insertReservations(tx, tenant, [{ ...want, ...subject }])
  const gas = {
    token: coin.symbol,
    decimals: coin.decimals,
    rawAmount: value + feeOfCall({ gasLimit, data }, snapshot.fees),
    isOfMaster: true,
  }
  const { masterWalletId } = payer
  if (kind === 'claim')
    await replaceClaimGas({ ...ctx, tenant }, tx, { masterWalletId, subjectId: transferId, gas: undefined })
  await countGas({ ...ctx, tenant }, tx, { masterWalletId, subjectId: `${transferId} ${position}`, gas })
  tx.afterCommit(() => ctx.lanes.notify(network))
  return true
}

const pollMsMin = 500
const pollMsMax = 60_000

/**
 * Next poll time of a state that a chain or a partner decides. The interval is an eighth of the time since it began, so that polls become
 * rarer with age; half a second if it began just now or has not begun.
 */
export function nextPollTime({ clock }: Pick<Ctx, 'clock'>, began: Date | null): Date {
  const now = clock.now().getTime()
  const takenMs = now - (began?.getTime() ?? now)
  return instantOf(now + Math.min(pollMsMax, Math.max(pollMsMin, takenMs / 8)))
}
