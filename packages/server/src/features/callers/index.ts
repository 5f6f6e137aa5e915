export { refusalsOfEnded, refuseEndedCaller } from './callers.ts'
export { listEndedRequesters } from './store.ts'
