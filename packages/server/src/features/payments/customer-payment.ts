import { decodeAuthorizationUsedLog, decodeTransferWithMemoLog, type Network } from '@purser/protocol'
import type { Receipt } from '../../chain/port.ts'
import type { Queryable } from '../../platform/db/db.ts'
import { carriesRelays } from '../relayer/index.ts'
import { claimKeyOf, transactionClaim, transferClaim } from './new-payment.ts'
import { listTakenClaims } from './store.ts'

/**
 * Whether a transaction made a customer's payment, of any tenant: the settler sent it, it used an authorization that bought something, or it was
 * shown as a payment itself. The money in it came from a customer and from nobody else.
 */
export async function isCustomerPayment(
  db: Queryable,
  network: Network,
  { transactionHash, logs }: Pick<Receipt, 'transactionHash' | 'logs'>,
): Promise<boolean> {
  const authorized = logs.flatMap((log) => {
    const used = decodeAuthorizationUsedLog(log)
    return used === undefined
      ? []
      : [claimKeyOf(network, log, { payer: used.authorizer, authorization: { nonce: used.nonce } })]
  })
  const transferred = logs.flatMap((log, place) =>
    decodeTransferWithMemoLog(log) === undefined ? [] : [transferClaim(network, transactionHash, place)],
  )
  const claims = [transactionClaim(network, transactionHash), ...transferred, ...authorized]
  return (await listTakenClaims(db, claims)).size > 0 || carriesRelays(db, network, transactionHash)
}
