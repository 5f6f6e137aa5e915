import { useWorkspace } from '../api/context.ts'
import { actualNetwork } from './explorer.ts'
import { networkName } from './format.ts'

/** The network that a chain's name means in this environment. */
export function Network({ chain }: { chain: string }) {
  return networkName(actualNetwork(chain, useWorkspace().environment))
}
