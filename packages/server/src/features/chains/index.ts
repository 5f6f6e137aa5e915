export { networkFor } from './chains.ts'
export { fail as failChainName } from './errors.ts'
export { chainOperations } from './routes.ts'
export { ChainName } from './schema.ts'
