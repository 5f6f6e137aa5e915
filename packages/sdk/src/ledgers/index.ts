export { fileLedger } from './file.ts'
export { type LedgerDatabase, postgresLedger, postgresLedgerTables } from './postgres.ts'
