export { refusalsOfEnded, refuseEndedAccount, refuseEndedCaller } from './callers.ts'
export { listEndedRequesters } from './store.ts'
