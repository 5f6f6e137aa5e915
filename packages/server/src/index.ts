export { type BootOptions, bootServer, type RunningServer } from './boot.ts'
export { type Config, type ConfigFault, faultsAsText, readConfig, rpcVariable } from './config.ts'
export { type MigrateOptions, migrate } from './platform/db/migrate.ts'
