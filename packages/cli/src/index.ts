export { CannotDo } from './command.ts'
export { thisMachine } from './outside.ts'
export { type Service, serviceOf } from './service.ts'
