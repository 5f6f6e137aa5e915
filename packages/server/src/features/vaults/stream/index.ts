export { vaultStreamOperations } from './routes.ts'
export { VaultStreams } from './streams.ts'
