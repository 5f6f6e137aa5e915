export { CommandError } from './command.ts'
export { type Service, serviceOf } from './service.ts'
export { systemIo } from './system-io.ts'
