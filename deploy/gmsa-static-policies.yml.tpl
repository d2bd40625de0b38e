## Made from charts/gmsa-webhook by UPDATE_SNAPSHOTS=1 cargo test --test chart; deploy-gmsa-webhook.sh fills it in.
## Policies for files of the control plane, which no API server takes as objects.
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-guard.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - operations: [CREATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods]
        scope: Namespaced
      - operations: [UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [pods/ephemeralcontainers]
        scope: Namespaced
  matchConditions:
    - name: uses-gmsa
      expression: |-
        ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
          + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          .exists(s, has(s.securityContext) && has(s.securityContext.windowsOptions)
            && (has(s.securityContext.windowsOptions.gmsaCredentialSpecName) || has(s.securityContext.windowsOptions.gmsaCredentialSpec)))
  variables:
    # An update can add ephemeral containers alone. The rest was judged when the pod was created.
    - name: slots
      expression: |-
        request.operation == 'CREATE' ?
          ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
            + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          : object.spec.?ephemeralContainers.orValue([]).filter(e,
              !oldObject.spec.?ephemeralContainers.orValue([]).exists(old, old.name == e.name))
    - name: named
      expression: |-
        variables.slots.filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
    - name: serviceAccount
      expression: |-
        object.spec.?serviceAccountName.orValue('') == '' ? 'default' : object.spec.serviceAccountName
    - name: added
      expression: |-
        variables.named.map(s, s.securityContext.windowsOptions.gmsaCredentialSpecName)
    # names0 has all names of the pod, names1 has the names that differ from names0[0], and so on: the first items are the distinct names.
    - name: names0
      expression: |-
        ([dyn(object.spec)] + (has(object.spec.containers) && dyn(object.spec.containers) != null ? object.spec.containers : [])
          + (has(object.spec.initContainers) ? object.spec.initContainers : []) + (has(object.spec.ephemeralContainers) ? object.spec.ephemeralContainers : []))
          .filter(s, s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
          .map(s, s.securityContext.windowsOptions.gmsaCredentialSpecName)
    - name: names1
      expression: variables.names0.filter(name, name != variables.names0[0])
    - name: names2
      expression: variables.names1.filter(name, name != variables.names1[0])
    - name: names3
      expression: variables.names2.filter(name, name != variables.names2[0])
    - name: names4
      expression: variables.names3.filter(name, name != variables.names3[0])
    - name: names5
      expression: variables.names4.filter(name, name != variables.names4[0])
    - name: names6
      expression: variables.names5.filter(name, name != variables.names5[0])
    - name: names7
      expression: variables.names6.filter(name, name != variables.names6[0])
    - name: names8
      expression: variables.names7.filter(name, name != variables.names7[0])
    - name: names9
      expression: variables.names8.filter(name, name != variables.names8[0])
    - name: names10
      expression: variables.names9.filter(name, name != variables.names9[0])
    - name: names11
      expression: variables.names10.filter(name, name != variables.names10[0])
    - name: names12
      expression: variables.names11.filter(name, name != variables.names11[0])
    - name: names13
      expression: variables.names12.filter(name, name != variables.names12[0])
    - name: names14
      expression: variables.names13.filter(name, name != variables.names13[0])
    - name: names15
      expression: variables.names14.filter(name, name != variables.names14[0])
    - name: names16
      expression: variables.names15.filter(name, name != variables.names15[0])
    - name: names17
      expression: variables.names16.filter(name, name != variables.names16[0])
    - name: names18
      expression: variables.names17.filter(name, name != variables.names17[0])
    - name: names19
      expression: variables.names18.filter(name, name != variables.names18[0])
    - name: names20
      expression: variables.names19.filter(name, name != variables.names19[0])
    - name: names21
      expression: variables.names20.filter(name, name != variables.names20[0])
    - name: names22
      expression: variables.names21.filter(name, name != variables.names21[0])
    - name: names23
      expression: variables.names22.filter(name, name != variables.names22[0])
    - name: names24
      expression: variables.names23.filter(name, name != variables.names23[0])
  validations:
    - expression: |-
        variables.slots.all(s, !s.?securityContext.?windowsOptions.?gmsaCredentialSpec.hasValue()
          || s.?securityContext.?windowsOptions.?gmsaCredentialSpecName.hasValue())
      message: GMSA cred spec contents are set without the name of their cred spec
      reason: Invalid
    - expression: |-
        variables.named.all(s, s.securityContext.windowsOptions.?gmsaCredentialSpec.hasValue())
      message: a GMSA cred spec name has no contents, so the container would start without its identity; the mutating webhook did not run, or another one added the name after it
      reason: Invalid
    - expression: variables.names24.size() == 0
      message: more than 24 different GMSA cred specs in one pod
      reason: Invalid
    # One validation for each name: an expression for all names would exceed the cost limit.
    - expression: |-
        variables.names0.size() == 0 || !(variables.names0[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names0[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names0[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names1.size() == 0 || !(variables.names1[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names1[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names1[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names2.size() == 0 || !(variables.names2[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names2[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names2[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names3.size() == 0 || !(variables.names3[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names3[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names3[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names4.size() == 0 || !(variables.names4[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names4[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names4[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names5.size() == 0 || !(variables.names5[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names5[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names5[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names6.size() == 0 || !(variables.names6[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names6[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names6[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names7.size() == 0 || !(variables.names7[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names7[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names7[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names8.size() == 0 || !(variables.names8[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names8[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names8[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names9.size() == 0 || !(variables.names9[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names9[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names9[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names10.size() == 0 || !(variables.names10[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names10[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names10[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names11.size() == 0 || !(variables.names11[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names11[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names11[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names12.size() == 0 || !(variables.names12[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names12[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names12[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names13.size() == 0 || !(variables.names13[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names13[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names13[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names14.size() == 0 || !(variables.names14[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names14[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names14[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names15.size() == 0 || !(variables.names15[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names15[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names15[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names16.size() == 0 || !(variables.names16[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names16[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names16[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names17.size() == 0 || !(variables.names17[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names17[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names17[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names18.size() == 0 || !(variables.names18[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names18[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names18[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names19.size() == 0 || !(variables.names19[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names19[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names19[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names20.size() == 0 || !(variables.names20[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names20[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names20[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names21.size() == 0 || !(variables.names21[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names21[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names21[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names22.size() == 0 || !(variables.names22[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names22[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names22[0] + '"'
      reason: Forbidden
    - expression: |-
        variables.names23.size() == 0 || !(variables.names23[0] in variables.added)
          || authorizer.serviceAccount(request.namespace, variables.serviceAccount)
            .group('windows.k8s.io').resource('gmsacredentialspecs').namespace(request.namespace).name(variables.names23[0])
            .check('use').allowed()
      messageExpression: |-
        'service account "' + variables.serviceAccount + '" is not authorized to `use` GMSA cred spec "' + variables.names23[0] + '"'
      reason: Forbidden
---
# Only administrators change the webhook configurations. The publisher of the CA may write caBundle, and nothing else.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-configurations.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    resourceRules:
      - operations: [CREATE, UPDATE, DELETE]
        apiGroups: [admissionregistration.k8s.io]
        apiVersions: ["*"]
        resources:
          - mutatingwebhookconfigurations
          - validatingwebhookconfigurations
          - validatingadmissionpolicies
          - validatingadmissionpolicybindings
        scope: Cluster
  matchConditions:
    - name: of-this-release
      expression: |-
        (object == null ? oldObject : object).metadata.name in
          ["${NAME}","zz-${NAME}","${NAME}-guard","${NAME}-guard-trial","${NAME}-guard-opt-out","${NAME}-administrator","${NAME}-static-policies"]
    - name: not-by-an-administrator
      expression: |-
        (object == null ? oldObject : object).metadata.name == "${NAME}-static-policies"
          || !(request.userInfo.username in [${ADMIN_USERS}] || request.userInfo.?groups.orValue([]).exists(group, group in [${ADMIN_GROUPS}]))
  variables:
    - name: name
      expression: |-
        (object == null ? oldObject : object).metadata.name
    - name: publishes
      expression: request.userInfo.username in ["system:serviceaccount:${NAMESPACE}:${NAME}"]
  validations:
    # `kubectl gmsa doctor` uses this name to find out whether the policies are in force.
    - expression: variables.name != "${NAME}-static-policies"
      message: the static policies of the GMSA webhook ${NAME} are in force
      reason: Forbidden
    - expression: |-
        request.operation == 'UPDATE'
          && object.all(key, key in ["metadata","webhooks"] || (key in oldObject && object[key] == oldObject[key]))
          && oldObject.all(key, key in ["metadata","webhooks"] || key in object)
          && object.metadata.all(key, key in ["generation","managedFields","resourceVersion"] || (key in oldObject.metadata && object.metadata[key] == oldObject.metadata[key]))
          && oldObject.metadata.all(key, key in ["generation","managedFields","resourceVersion"] || key in object.metadata)
          && object.?webhooks.orValue([]).map(w, w.name) == oldObject.?webhooks.orValue([]).map(w, w.name)
          && object.?webhooks.orValue([]).all(new, oldObject.webhooks.exists(old, old.name == new.name
            && new.all(key, key in ["clientConfig"] || (key in old && new[key] == old[key]))
            && old.all(key, key in ["clientConfig"] || key in new)
            && new.clientConfig.all(key, key in ["caBundle"] || (key in old.clientConfig && new.clientConfig[key] == old.clientConfig[key]))
            && old.clientConfig.all(key, key in ["caBundle"] || key in new.clientConfig)
            && (variables.publishes || new.clientConfig.?caBundle == old.clientConfig.?caBundle)))
      messageExpression: |-
        'user "' + request.userInfo.username + '" may not '
          + {'CREATE': 'create', 'UPDATE': 'change', 'DELETE': 'delete'}[request.operation] + ' ' + request.resource.resource + '/' + variables.name
          + (request.operation == 'UPDATE' && variables.publishes ? ' except for its caBundle' : '')
          + ': only the administrators that the static policies of the control plane name may'
      reason: Forbidden
---
# when: self-managed
# The API server trusts every CA that this Secret names.
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicy
metadata:
  name: ${NAME}-secret.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  failurePolicy: Fail
  matchConstraints:
    namespaceSelector:
      matchLabels:
        kubernetes.io/metadata.name: ${NAMESPACE}
    resourceRules:
      - operations: [CREATE, UPDATE]
        apiGroups: [""]
        apiVersions: ["*"]
        resources: [secrets]
        scope: Namespaced
  matchConditions:
    - name: of-this-release
      expression: object.metadata.name == "${NAME}-tls"
  validations:
    - expression: |-
        request.operation == 'UPDATE' && request.userInfo.username == "system:serviceaccount:${NAMESPACE}:${NAME}"
          || (request.userInfo.username in [${ADMIN_USERS}] || request.userInfo.?groups.orValue([]).exists(group, group in [${ADMIN_GROUPS}]))
      messageExpression: |-
        'user "' + request.userInfo.username + '" may not write the Secret ${NAME}-tls'
          + ': only the administrators that the static policies of the control plane name may'
      reason: Forbidden
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-guard.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-guard.static.k8s.io
  validationActions: ["Deny"]
---
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-configurations.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-configurations.static.k8s.io
  validationActions: ["Deny"]
---
# when: self-managed
apiVersion: admissionregistration.k8s.io/v1
kind: ValidatingAdmissionPolicyBinding
metadata:
  name: ${NAME}-secret.static.k8s.io
  annotations:
    # Argo CD leaves it out: it is a file of the control plane, and no API server takes an object of this name.
    argocd.argoproj.io/hook: Skip
spec:
  policyName: ${NAME}-secret.static.k8s.io
  validationActions: ["Deny"]
