export { CommandError } from './command.ts'
export { type Service, serviceAddress, serviceOf } from './service.ts'
export { systemIo } from './system-io.ts'
export { versionOf } from './version.ts'
