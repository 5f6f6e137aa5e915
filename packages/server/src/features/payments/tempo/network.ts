import type { Network } from '@purser/protocol'

/** Whether the network is a Tempo network, the only kind here whose fees are paid in tokens. */
export function isTempo(network: Network): boolean {
  return network.nativeCoin === null
}
