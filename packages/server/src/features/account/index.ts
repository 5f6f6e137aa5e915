export { accountOperations } from './routes.ts'
