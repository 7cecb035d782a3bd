/** Requests that set the server up. */

import { at, get, post, put, remove } from "../api/client";
import type { AgentBody, AgentSetup, AgentSetupList, Download, DownloadSetup, FolderTrust, FolderTrustList, NewProvider, NewServer, ProviderSetup, ProviderSetupList, ProviderTest, ServerLogin, ServerPlan, ServerSetup, ServerSetupList, SkillBody, SkillSetup, SkillSetupList } from "../api/generated";

export type { AgentBody, AgentSetup, AgentSetupList, Download, DownloadSetup, FolderTrust, FolderTrustList, NewProvider, NewServer, ProviderSetup, ProviderSetupList, ProviderTest, ServerLogin, ServerPlan, ServerSetup, ServerSetupList, SkillBody, SkillSetup, SkillSetupList };

export const providers = (): Promise<ProviderSetupList> => get("/api/setup/providers");
export const addProvider = (body: NewProvider): Promise<ProviderSetup> => post("/api/setup/providers", body);
export const removeProvider = (name: string): Promise<void> => remove(at`/api/setup/providers/${name}`);
export const storeKey = (name: string, key: string): Promise<ProviderSetup> => put(at`/api/setup/providers/${name}/key`, { key });
export const removeKey = (name: string): Promise<void> => remove(at`/api/setup/providers/${name}/key`);
export const testProvider = (name: string): Promise<ProviderTest> => post(at`/api/setup/providers/${name}/test`);

export const downloads = (): Promise<DownloadSetup> => get("/api/setup/downloads");
export const download = (model: string): Promise<Download> => post("/api/setup/downloads", { model });
export const removeDownload = (name: string): Promise<void> => remove(at`/api/setup/downloads/${name}`);

export const servers = (): Promise<ServerSetupList> => get("/api/setup/servers");
export const planServer = (body: NewServer): Promise<ServerPlan> => post("/api/setup/servers/plan", body);
export const addServer = (body: NewServer, confirm: string): Promise<ServerSetup> => post("/api/setup/servers", { ...body, confirm });
export const restartServer = (name: string): Promise<ServerSetup> => post(at`/api/setup/servers/${name}/restart`);
export const removeServer = (name: string): Promise<void> => remove(at`/api/setup/servers/${name}`);
export const signIn = (name: string): Promise<ServerLogin> => post(at`/api/setup/servers/${name}/login`);
export const callSignInOff = (name: string): Promise<void> => remove(at`/api/setup/servers/${name}/login`);
export const finishSignIn = (returned: Record<string, string>): Promise<ServerLogin> => post("/api/setup/logins", returned);

export const agents = (): Promise<AgentSetupList> => get("/api/setup/agents");
export const putAgent = (name: string, body: AgentBody): Promise<AgentSetup> => put(at`/api/setup/agents/${name}`, body);
export const removeAgent = (name: string): Promise<void> => remove(at`/api/setup/agents/${name}`);

export const trust = (): Promise<FolderTrustList> => get("/api/setup/trust");
export const skills = (): Promise<SkillSetupList> => get("/api/setup/skills");
export const putSkill = (name: string, body: SkillBody): Promise<SkillSetup> => put(at`/api/setup/skills/${name}`, body);
export const removeSkill = (name: string): Promise<void> => remove(at`/api/setup/skills/${name}`);
