import { formatAmount, networkByName, sameAddress, zeroAddress } from '@purser/protocol'
import type { TransferRow } from './store.ts'

/** The expected or received amount, as it is shown. */
export interface Arrived {
  readonly toAmount: string
  /** The received token if it differs from the requested one: its symbol, or its address if the service does not know it. */
  readonly receivedToken: string | null
  readonly destinationTxHash: string | null
}

/** Amounts of a token that the service does not know are in its smallest unit. */
export function arrivedOf(row: TransferRow): Arrived {
  const { receivedToken, destinationTxHash, rawReceived } = row
  const other = receivedToken === null ? undefined : coinAt(row.toNetwork, receivedToken)
  const decimals = receivedToken === null ? (row.toDecimals ?? row.decimals) : (other?.decimals ?? 0)
  const raw = rawReceived ?? row.rawOut ?? row.rawAmount
  return {
    toAmount: formatAmount(raw, decimals),
    receivedToken: other?.symbol ?? receivedToken,
    destinationTxHash,
  }
}

function coinAt(networkName: string, address: `0x${string}`) {
  const network = networkByName(networkName)
  if (sameAddress(address, zeroAddress)) return network?.nativeCoin ?? undefined
  return network?.tokens.find((token) => sameAddress(token.address, address))
}
