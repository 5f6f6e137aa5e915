import type { Network } from '@purser/protocol'
import type { Clock } from '../../platform/clock.ts'
import type { Log } from '../../platform/log.ts'
import type { QuorumReads } from '../quorum-port.ts'
import { createAuthorizationUse } from './authorization-use.ts'
import { createFirstNonce } from './first-nonce.ts'
import { createPermit2Use } from './permit2-use.ts'
import type { Quorum } from './quorum.ts'
import { createReceipts } from './receipts.ts'
import { createSameCall } from './same-call.ts'
import { createStates } from './states.ts'
import { createTempoReads } from './tempo.ts'

export interface QuorumOptions {
  readonly network: Network
  readonly quorum: Quorum
  readonly clock: Clock
  readonly log?: Log | undefined
}

/** All reads on which money depends, each confirmed by a quorum of the network's nodes. */
export function createQuorumReads({ network, quorum, clock, log }: QuorumOptions): QuorumReads {
  const reads = { ...createReceipts(network, quorum), ...createStates(network, quorum) }
  return {
    ...reads,
    ...createAuthorizationUse({ network, clock, quorum, reads }),
    ...createFirstNonce({ network, quorum, clock, log }),
    ...createSameCall({ network, clock, quorum }),
    ...createTempoReads(network, quorum),
    ...createPermit2Use({ network, clock, quorum }),
  }
}
