export { sessionRecurring } from './jobs.ts'
export { sessionOperations } from './routes.ts'
