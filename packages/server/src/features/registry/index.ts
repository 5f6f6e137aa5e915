export { publicRoutes } from './public-routes.ts'
export { registryOperations } from './routes.ts'
