export { sweepRequests } from './jobs.ts'
export { startRequestLog } from './recorder.ts'
export { requestOperations } from './routes.ts'
