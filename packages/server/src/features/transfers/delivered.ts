import { type Address, decodeTransferLog, type Network, sameAddress } from '@purser/protocol'
import type { Log } from '../../chain/port.ts'
import { isVirtual } from '../wallets/index.ts'

/**
 * What these logs brought an account of a token, net of what it sent on. Behind a virtual address of Tempo (TIP-1022) everything goes on at
 * once, to the account that it stands for: that counts as having come.
 */
export function deliveredTo(
  { network, token, account }: { readonly network: Network; readonly token: Address; readonly account: Address },
  logs: readonly Log[],
): bigint {
  const goesOn = network.nativeCoin === null && isVirtual(account.toLowerCase())
  return logs
    .map((log) => (sameAddress(log.address, token) ? decodeTransferLog(log) : undefined))
    .filter((moved) => moved !== undefined)
    .reduce((sum, { from, to, value }) => {
      const came = sameAddress(to, account) ? value : 0n
      return sum + came - (sameAddress(from, account) && !goesOn ? value : 0n)
    }, 0n)
}
