import { type Address, decodeTransferLog, type Hex, sameAddress } from '@purser/protocol'
import type { Chain, Log, Receipt } from '../../chain/port.ts'
import { isManagedAddress } from '../wallets/index.ts'
import type { Ctx } from './ports.ts'

/** The receipt of a transaction, from any node that has it. */
export async function findReceipt(chain: Chain, hash: Hex): Promise<Receipt | undefined> {
  const own = await chain.receipt(hash)
  if (own !== undefined) return own
  const [elsewhere] = await chain.findReceipts([hash])
  return elsewhere?.receipt
}

/** Whether the receipt is of a successful transaction, and a quorum confirms it at the payment depth. */
export async function isConfirmed(chain: Chain, receipt: Receipt): Promise<boolean> {
  if (receipt.status !== 'success') return false
  const [verdict] = await chain.confirmReceipts([receipt])
  return verdict === 'yes'
}

/** Excludes logs from other managed wallets to the account: a sweep or a transfer of this service is not a payment of a partner. */
export async function withoutOwn(
  { db }: Pick<Ctx, 'db'>,
  logs: readonly Log[],
  account: Address,
): Promise<readonly Log[]> {
  const kept: Log[] = []
  for (const log of logs) {
    const moved = decodeTransferLog(log)
    const arrives = moved !== undefined && sameAddress(moved.to, account) && !sameAddress(moved.from, account)
    if (!arrives || !(await isManagedAddress(db, moved.from))) kept.push(log)
  }
  return kept
}
