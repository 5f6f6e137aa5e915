import { type Address, decodeTransferLog, type Network, sameAddress } from '@purser/protocol'
import type { Log } from '../../chain/port.ts'
import { isVirtual } from '../wallets/index.ts'

/**
 * Amount of a token that these logs brought to an account, less what it sent on. A virtual address of Tempo (TIP-1022) forwards everything
 * immediately to its account: that counts as received.
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
