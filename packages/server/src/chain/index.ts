export { createChains } from './chains.ts'
export { createLanes } from './lanes/lanes.ts'
export { createSignatures, type Signatures } from './recover.ts'
export { createTempoTransactions, withFeePayer, withSender } from './tempo.ts'
