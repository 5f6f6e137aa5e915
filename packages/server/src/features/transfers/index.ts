export { transferHandler } from './handler.ts'
export { transferRecurring } from './jobs.ts'
export { transferOperations } from './routes.ts'
