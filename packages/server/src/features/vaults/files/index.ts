export { fileUrl } from './link.ts'
export { vaultFileOperations } from './routes.ts'
export { sweepFiles } from './sweep.ts'
