export { getUsage } from './billing.ts'
export { billingOperations } from './routes.ts'
export { Usage } from './schema.ts'
