import './ports.ts'

export { testDepositHandler } from './deposits.ts'
export { testOperations } from './routes.ts'
