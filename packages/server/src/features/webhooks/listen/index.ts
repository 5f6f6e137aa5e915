export { Listeners } from './listeners.ts'
export { listenOperations } from './routes.ts'
