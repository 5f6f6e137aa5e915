export { deleteUnreferencedFiles } from './delete-unreferenced.ts'
export { fileUrl } from './link.ts'
export { vaultFileOperations } from './routes.ts'
