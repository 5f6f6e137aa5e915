export { bankAccountOperations } from './bank-accounts/routes.ts'
