export { type BootOptions, bootServer, type RunningServer } from './boot.ts'
export { type Config, explorerVariable, faultsAsText, readConfig, rpcVariable } from './config.ts'
export type { ConfigFault } from './platform/config-fault.ts'
export { type MigrateOptions, migrate } from './platform/db/migrate.ts'
