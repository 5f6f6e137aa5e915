export { createChains } from './chain.ts'
export { createLanes } from './lanes.ts'
export { createSignatures, type Signatures } from './recover.ts'
export { createTempoTransactions, withFeePayer } from './tempo.ts'
